"""Converts constituency trees to tag sequences and back, for parsing as translation.

The source of a pair is the sentence; the target is its linearised tree without the
words: a tag at the beginning of each constituent (`NP`), the same tag with a slash at
its end (`/NP`), and a part of speech (`DT`) for each word. The outermost label (`TOP`)
is omitted.

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
"""Language code of targets that are linearised trees."""

ROOT = "TOP"
_ELEMENT = re.compile(
    r"\((?P<tag>[^\s()]+)\s+(?P<word>[^\s()]+)\s*\)"  # a word and its part of speech
    r"|\((?P<label>[^\s()]*)"  # the beginning of a constituent
    r"|(?P<end>\))"
    r"|(?P<stray>[^\s()]+)"
)
_BRACKETED = re.compile(r"\S*[()]\S*")
_EXCERPT = 60  # Maximum number of characters of a malformed tree in a message.


class Kind(enum.Enum):
    """Meaning of a tag."""

    BEGIN = "a constituent begins"
    END = "a constituent ends"
    WORD = "a word"


class Mark(NamedTuple):
    """Tag with its meaning."""

    kind: Kind  # Meaning of the tag.
    label: str  # Label of the constituent, or part of speech of the word.


def build_tree(words: str, tags: str) -> str:
    """Returns the tree `(TOP ...)` of words and tags, each separated by white space.

    Raises UserError if the tags are not a tree over the words, or if either contains a
    bracket.
    """
    if match := _BRACKETED.search(f"{words} {tags}"):
        raise UserError(
            f"{match[0]!r} contains a bracket: write -LRB- and -RRB- for brackets"
        )
    marks = read_tags(tags.split())
    speech, count = parts_of_speech(marks), len(words.split())
    if not speech or len(speech) != count:
        raise _error(
            tags,
            f"there are {count} words, but {len(speech)} parts of speech or "
            "unclosed constituents",
        )
    return spell(marks, words.split())


def read_tree(tree: str) -> tuple[list[Mark], list[str]]:
    """Parses a bracketed tree in the format of the Penn Treebank.

    Args:
        tree: Brackets with labels, which may be empty for the outermost bracket, and a
            part of speech for every word. White space between brackets is ignored.

    Returns:
        The marks (at least three, including the outermost label), and the words, one
        for each `Kind.WORD`.

    Raises:
        UserError: The tree is malformed.
    """
    words: list[str] = []
    marks: list[Mark] = []
    open_: list[str] = []  # Labels of the open constituents.
    for match in _ELEMENT.finditer(tree):
        if fault := _find_fault(match, open_, marks):
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

    A tag without a slash is either the beginning of a constituent or a part of speech.
    The tags are read backwards: a tag begins the innermost open constituent if it has
    the same label and the constituent is not empty. The result is unique unless a label
    is also used as a part of speech, which does not occur in the Penn Treebank.

    Raises UserError if an end tag is unmatched or a constituent is empty.
    """
    marks: list[Mark] = []
    # Positions of the end tags whose beginning has not been found yet.
    open_: list[int] = []
    for position in reversed(range(len(tags))):
        tag = tags[position]
        if tag.startswith("/"):
            marks.append(Mark(Kind.END, tag[1:]))
            open_.append(position)
        elif open_ and tags[open_[-1]] == f"/{tag}" and marks[-1].kind is not Kind.END:
            marks.append(Mark(Kind.BEGIN, tag))
            open_.pop()
        else:
            marks.append(Mark(Kind.WORD, tag))
    if open_:
        end = open_[-1]
        fault = f"{tags[end]} (tag {end + 1}) has no beginning or is empty"
        raise _error(" ".join(tags), fault)
    return marks[::-1]


def write_tags(marks: Iterable[Mark]) -> list[str]:
    """Returns the tags of the marks: the inverse of `read_tags`."""
    return [f"/{label}" if kind is Kind.END else label for kind, label in marks]


def parts_of_speech(marks: Iterable[Mark]) -> list[str]:
    """Returns the labels of the words among the marks."""
    return [mark.label for mark in marks if mark.kind is Kind.WORD]


def remove_empty(marks: Iterable[Mark]) -> list[Mark]:
    """Removes constituents that contain no words."""
    result: list[Mark] = []
    for mark in marks:
        if mark.kind is Kind.END and result[-1].kind is Kind.BEGIN:
            result.pop()
        else:
            result.append(mark)
    return result


def spell(marks: Iterable[Mark], words: Iterable[str]) -> str:
    """Returns the bracketed tree of marks and words, inside of `(TOP ...)`."""
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


def _find_fault(
    match: re.Match[str], open_: Sequence[str], marks: Sequence[Mark]
) -> str | None:
    """Returns an error description for an element of a tree, or None.

    Args:
        match: Match of `_ELEMENT`.
        open_: Labels of the open constituents.
        marks: Marks before the element.
    """
    if match["stray"]:
        return f"the word {match[0]!r} has no part of speech"
    if marks and not open_:
        return f"{match[0]!r} follows the last closing bracket"
    if match["tag"] and not open_:
        return f"{match[0]!r} is not in a constituent"
    if match["end"] and not open_:
        return "unmatched closing bracket"
    if match["end"] and marks[-1].kind is Kind.BEGIN:
        return f"({open_[-1]}) is empty"
    if match["label"] == "" and open_:
        return "an opening bracket has no label"
    return None


def _error(tree: str, fault: str) -> UserError:
    """Returns a UserError with the beginning of the tree and the fault."""
    excerpt = textwrap.shorten(tree, _EXCERPT, placeholder=" ...")
    return UserError(f"not a well-formed tree, {excerpt!r}: {fault}")
