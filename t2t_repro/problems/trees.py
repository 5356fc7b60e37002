"""Constituency trees as a sequence of tags, for parsing as translation.

The source is the sentence's words; the target is its tree without them: a tag where
a constituent begins (`NP`), the same with a slash where it ends (`/NP`), and the part
of speech (`DT`) where a word stands. The outermost label (`TOP`) is left out.

    (TOP (S (NP (PRP I)) (VP (VBP see) (NP (NNS dogs)))))
    I see dogs
    S NP PRP /NP VP VBP NP NNS /NP /VP /S

Source: paper section 6.3; Vinyals et al. 2015, "Grammar as a Foreign Language"
(arXiv:1412.7449); tensor2tensor data_generators/wsj_parsing.py:
words_and_tags_from_wsj_tree.
"""

from __future__ import annotations

import enum
import re
import textwrap
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from t2t_repro.system.errors import UserError

TREES = "trees"
"""The language code of targets that are such tags."""

ROOT = "TOP"
_PIECE = re.compile(
    r"\((?P<tag>[^\s()]+)\s+(?P<word>[^\s()]+)\s*\)"  # a word and its part of speech
    r"|\((?P<label>[^\s()]*)"  # where a constituent begins
    r"|(?P<end>\))"
    r"|(?P<stray>[^\s()]+)"
)
_BRACKETED = re.compile(r"\S*[()]\S*")
_SHOWN = 60  # Characters of a faulty tree in a message.


class Kind(enum.Enum):
    """What a tag stands for."""

    BEGIN = "a constituent begins"
    END = "a constituent ends"
    WORD = "a word"


class Mark(NamedTuple):
    """A tag, and what it stands for."""

    kind: Kind  # Which of the three.
    label: str  # The constituent's label, or the word's part of speech.


def tree_of(words: str, tags: str) -> str:
    """Returns the tree `(TOP ...)` of words and tags, each separated by white space.

    Tags that are no tree over the words, or a bracket in either, are a UserError.
    """
    if found := _BRACKETED.search(f"{words} {tags}"):
        raise UserError(
            f"{found[0]!r} cannot stand in a tree: write -LRB- and -RRB- for brackets"
        )
    marks = read_tags(tags.split())
    speech, count = parts_of_speech(marks), len(words.split())
    if not speech or len(speech) != count:
        raise _error(
            tags,
            f"there are {count} words, but {len(speech)} parts of speech or "
            "constituents without an end",
        )
    return spell(marks, words.split())


def read_tree(tree: str) -> tuple[list[Mark], list[str]]:
    """Takes a bracketed tree apart, the outermost label included, which may be missing.

    It is as in the Penn Treebank, with a part of speech around every word; white space
    between brackets is free. Returns the marks, at least three, and the words, one for
    each `Kind.WORD`. What is no such tree is a UserError.
    """
    words: list[str] = []
    marks: list[Mark] = []
    open_: list[str] = []  # The label of every open constituent.
    for match in _PIECE.finditer(tree):
        if fault := _fault_of(match, open_, marks):
            raise _error(tree, f"{fault} (character {match.start() + 1})")
        if match["tag"]:
            words.append(match["word"])
            marks.append(Mark(Kind.WORD, match["tag"]))
        elif match["end"]:
            marks.append(Mark(Kind.END, open_.pop()))
        else:
            marks.append(Mark(Kind.BEGIN, match["label"]))
            open_.append(match["label"])
    if open_:
        missing = ", ".join(f"({label}" for label in open_)
        raise _error(tree, f"the closing brackets of {missing} are missing")
    if not marks:
        raise _error(tree, "it is empty")
    return marks, words


def read_tags(tags: Sequence[str]) -> list[Mark]:
    """Returns a mark for each tag of a tree.

    A tag that names the innermost constituent still to begin, one with something in it,
    begins it; all others without a slash are parts of speech. No other reading is
    possible where no label is used for both, as in the Penn Treebank. An end without a
    beginning, or of an empty constituent, is a UserError.
    """
    marks: list[Mark] = []
    # From the end, where the tag with the slash comes first: the places of those
    # whose beginning is still to come.
    open_: list[int] = []
    for place in reversed(range(len(tags))):
        tag = tags[place]
        if tag.startswith("/"):
            marks.append(Mark(Kind.END, tag[1:]))
            open_.append(place)
        elif open_ and tags[open_[-1]] == f"/{tag}" and marks[-1].kind is not Kind.END:
            marks.append(Mark(Kind.BEGIN, tag))
            open_.pop()
        else:
            marks.append(Mark(Kind.WORD, tag))
    if open_:
        end = open_[-1]
        fault = f"{tags[end]} (tag {end + 1}) ends what has not begun or is empty"
        raise _error(" ".join(tags), fault)
    return marks[::-1]


def tags_of(marks: Iterable[Mark]) -> list[str]:
    """Spells marks as tags: the inverse of `read_tags`."""
    return [f"/{label}" if kind is Kind.END else label for kind, label in marks]


def parts_of_speech(marks: Iterable[Mark]) -> list[str]:
    """Returns the labels of the words among the marks."""
    return [mark.label for mark in marks if mark.kind is Kind.WORD]


def without_empty(marks: Iterable[Mark]) -> list[Mark]:
    """Leaves out constituents that have no word."""
    kept: list[Mark] = []
    for mark in marks:
        if mark.kind is Kind.END and kept[-1].kind is Kind.BEGIN:
            kept.pop()
        else:
            kept.append(mark)
    return kept


def spell(marks: Iterable[Mark], words: Iterable[str]) -> str:
    """Spells a tree in brackets; `(TOP ...)` is added around the marks."""
    remaining = iter(words)
    pieces = []
    for kind, label in marks:
        if kind is Kind.END:
            pieces.append(")")
        elif kind is Kind.BEGIN:
            pieces.append(f" ({label}")
        else:
            pieces.append(f" ({label} {next(remaining)})")
    return f"({ROOT}{''.join(pieces)})"


def _fault_of(
    match: re.Match[str], open_: Sequence[str], marks: Sequence[Mark]
) -> str | None:
    """Returns what is wrong with a piece of a tree, or None.

    `open_` is as in `read_tree`, `marks` are those before the piece.
    """
    if match["stray"]:
        return f"the word {match[0]!r} has no part of speech of its own"
    if marks and not open_:
        return f"{match[0]!r} comes after its last closing bracket"
    if match["tag"] and not open_:
        return f"{match[0]!r} is in no constituent"
    if match["end"] and not open_:
        return "a closing bracket closes nothing"
    if match["end"] and marks[-1].kind is Kind.BEGIN:
        return f"({open_[-1]}) has nothing in it"
    if match["label"] == "" and open_:
        return "an opening bracket has no label"
    return None


def _error(tree: str, fault: str) -> UserError:
    """Returns an error that shows the tree's beginning and what is wrong with it."""
    shown = textwrap.shorten(tree, _SHOWN, placeholder=" ...")
    return UserError(f"not a well-formed tree, {shown!r}: {fault}.")
