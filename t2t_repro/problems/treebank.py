"""Files of bracketed trees, as treebanks and parsers write them, and their clean form.

A file holds one tree after the other, each on as many lines as it likes. Before trees
are learned or scored, as usual since Collins 1997:

* functional tags and indices go: `NP-SBJ-1` and `NP=2` become `NP`;
* traces go (part of speech `-NONE-`), and the constituents that hold nothing else;
* the outermost label is `TOP`, whether there was none, `ROOT`, `S1` or `VROOT`; a tree
  that begins with any other gets it around itself.

Words, parts of speech, punctuation and labels such as `PRT|ADVP` stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from t2t_repro.problems.trees import (
    ROOT,
    Kind,
    Mark,
    parts_of_speech,
    read_tree,
    tags_of,
    without_empty,
)
from t2t_repro.system.atomic_file import iterate_lines
from t2t_repro.system.errors import UserError

_TRACE = "-NONE-"
_ROOTS = ("", ROOT, "ROOT", "S1", "VROOT")
_BRACKET = re.compile(r"[()]")
# A label that begins with the sign is none with a function: -LRB-.
_FUNCTION = re.compile(r"^([^-=]+)[-=].*")


def iterate_trees(path: Path) -> Iterator[tuple[str, str]]:
    """Yields words and tags, as in trees.py, of each tree of a file, cleaned.

    UserError names the file, and the line that is no tree.
    """
    for line, tree in iterate_texts(path):
        try:
            marks, words = clean(*read_tree(tree))
        except UserError as error:
            raise UserError(f"{path}:{line}: {error}") from None
        yield " ".join(words), " ".join(tags_of(marks))


def iterate_texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yields the line where each tree of a file begins, and its text, not looked into.

    Raises as `iterate_trees`.
    """
    depth, begun, tree = 0, 0, ""
    for number, line in enumerate(iterate_lines(path), 1):
        done = 0  # How much of the line belongs to trees that were yielded.
        for match in _BRACKET.finditer(line):
            if depth == 0 and (stray := line[done : match.start()].strip()):
                raise _stray(path, number, stray)
            if match[0] == "(":
                if depth == 0:
                    begun, done = number, match.start()
                depth += 1
                continue
            if depth == 0:
                raise UserError(
                    f"{path}:{number}: a closing bracket closes nothing (character "
                    f"{match.start() + 1})."
                )
            depth -= 1
            if depth == 0:
                yield begun, tree + line[done : match.end()]
                tree, done = "", match.end()
        rest = line[done:]
        if depth:
            tree += rest + "\n"
        elif stray := rest.strip():
            raise _stray(path, number, stray)
    if depth:
        raise UserError(
            f"{path}:{begun}: the tree that begins here does not end: "
            f"{depth} closing brackets are missing."
        )


def clean(marks: Sequence[Mark], words: Sequence[str]) -> tuple[list[Mark], list[str]]:
    """Takes out of a tree what is not learned; see the top of this file.

    Returns the marks, now without the outermost `TOP`, and the words that are left. If
    none is, or a label begins with a slash, that is a UserError.
    """
    if marks[0].label in _ROOTS:
        marks = marks[1:-1]
    bare: list[Mark] = []
    for mark in marks:
        if mark.label.startswith("/"):
            raise UserError(f"{mark.label!r} is no label: it would end a constituent.")
        if mark.kind is not Kind.WORD:
            bare.append(Mark(mark.kind, _FUNCTION.sub(r"\1", mark.label)))
        elif mark.label != _TRACE:
            bare.append(mark)
    speech = zip(words, parts_of_speech(marks), strict=True)
    kept_words = [word for word, label in speech if label != _TRACE]
    if not kept_words:
        raise UserError("a tree that holds traces and no word.")
    return without_empty(bare), kept_words


def _stray(path: Path, number: int, text: str) -> UserError:
    return UserError(
        f"{path}:{number}: {text[:40]!r} is outside of all brackets; a file of trees "
        "holds nothing else."
    )
