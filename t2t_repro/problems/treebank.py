"""Reads and cleans files of bracketed trees, as written by treebanks and parsers.

A file is a sequence of trees; line breaks are ignored. Trees are cleaned before both
training and scoring, as usual since Collins 1997:

* Functional tags and indices are removed: `NP-SBJ-1` and `NP=2` become `NP`.
* Traces (part of speech `-NONE-`) and constituents that contain only traces are
  removed.
* The outermost label is `TOP`. It replaces an empty label, `ROOT`, `S1` and `VROOT`,
  and is added around any other label.

Words, parts of speech, punctuation and labels such as `PRT|ADVP` are unchanged.
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
    remove_empty,
    write_tags,
)
from t2t_repro.system.atomic_file import iterate_lines
from t2t_repro.system.errors import UserError

_TRACE = "-NONE-"
_ROOTS = ("", ROOT, "ROOT", "S1", "VROOT")
_PIECE = re.compile(r"[()]|[^()]+")
# Matches labels with a functional tag or an index, but not -LRB-.
_FUNCTION = re.compile(r"^([^-=]+)[-=].*")


def iterate_trees(path: Path) -> Iterator[tuple[str, str]]:
    """Yields (words, tags) of each cleaned tree in a file; see trees.py.

    Raises UserError with file and line if a tree is malformed.
    """
    for line, tree in iterate_texts(path):
        try:
            marks, words = clean(*read_tree(tree))
        except UserError as error:
            raise UserError(f"{path}:{line}: {error}") from None
        yield " ".join(words), " ".join(write_tags(marks))


def iterate_texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yields the first line number and the text of each tree in a file.

    Only checks that brackets are balanced. Raises UserError with file and line if they
    are not, or if there is text outside of them.
    """
    depth, first_line, tree = 0, 0, ""
    for number, line in enumerate(iterate_lines(path), 1):
        for match in _PIECE.finditer(f"{line}\n"):
            piece = match[0]
            if depth == 0 and piece == ")":
                raise UserError(
                    f"{path}:{number}: unmatched closing bracket (character "
                    f"{match.start() + 1})"
                )
            if depth == 0 and piece != "(":
                if stray := piece.strip():
                    raise UserError(
                        f"{path}:{number}: {stray[:40]!r} is outside of all brackets; "
                        "the file must contain only bracketed trees"
                    )
                continue
            if depth == 0:
                first_line, tree = number, ""
            tree += piece
            depth += (piece == "(") - (piece == ")")
            if depth == 0:
                yield first_line, tree
    if depth:
        raise UserError(
            f"{path}:{first_line}: the tree that begins here does not end: "
            f"{depth} closing brackets are missing"
        )


def clean(marks: Sequence[Mark], words: Sequence[str]) -> tuple[list[Mark], list[str]]:
    """Removes functional tags, traces and the outermost label from a tree.

    Args:
        marks: Marks of the tree, including the outermost label.
        words: Words of the tree, including traces.

    Returns:
        The marks without the outermost label, and the words without traces.

    Raises:
        UserError: The tree contains only traces, or a label begins with a slash.
    """
    if marks[0].label in _ROOTS:
        marks = marks[1:-1]
    clean_marks: list[Mark] = []
    for mark in marks:
        if mark.label.startswith("/"):
            raise UserError(
                f"the label {mark.label!r} begins with a slash, which is reserved for "
                "the ends of constituents"
            )
        if mark.kind is not Kind.WORD:
            clean_marks.append(Mark(mark.kind, _FUNCTION.sub(r"\1", mark.label)))
        elif mark.label != _TRACE:
            clean_marks.append(mark)
    speech = zip(words, parts_of_speech(marks), strict=True)
    clean_words = [word for word, label in speech if label != _TRACE]
    if not clean_words:
        raise UserError("the tree contains only traces, no words")
    return remove_empty(clean_marks), clean_words
