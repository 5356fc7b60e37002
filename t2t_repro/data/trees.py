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

import re
import textwrap

from t2t_repro.errors import UserError

_ROOT = "TOP"
_PIECE = re.compile(
    r"\((?P<tag>[^\s()]+)\s+(?P<word>[^\s()]+)\s*\)"  # a word and its part of speech
    r"|\((?P<label>[^\s()]*)"  # where a constituent begins
    r"|(?P<end>\))"
    r"|(?P<stray>[^\s()]+)"
)
_BRACKETED = re.compile(r"\S*[()]\S*")
_SHOWN = 60  # Characters of a faulty tree in a message.


def words_and_tags(tree: str) -> tuple[str, str]:
    """Takes a bracketed tree apart.

    Args:
        tree: one tree in the Penn Treebank's brackets, as in this file's example,
            with a part of speech around every word. White space between brackets is
            free; the outermost label may be missing, as in the treebank's own files.

    Returns:
        The words and the tags, each separated by single spaces.

    Raises:
        UserError: brackets do not match, or it is no tree of this kind.
    """
    words: list[str] = []
    tags: list[str] = []
    # The label of every open constituent, and how many tags stood before its first.
    open_: list[tuple[str, int]] = []
    for match in _PIECE.finditer(tree):
        if fault := _fault_of(match, open_, tags):
            raise _error(tree, f"{fault} (character {match.start() + 1})")
        if match["tag"]:
            words.append(match["word"])
            tags.append(match["tag"])
        elif match["end"]:
            tags.append(f"/{open_.pop()[0]}")
        else:
            tags.append(match["label"])
            open_.append((match["label"], len(tags)))
    if open_:
        missing = ", ".join(f"({label}" for label, _ in open_)
        raise _error(tree, f"the closing brackets of {missing} are missing")
    if not tags:
        raise _error(tree, "it is empty")
    return " ".join(words), " ".join(tags[1:-1])


def tree_of(words: str, tags: str) -> str:
    """Puts a tree together again: the inverse of `words_and_tags`.

    A tag that names the innermost constituent still to begin, one with something in
    it, begins it; all others without a slash are parts of speech. No other reading is
    possible where no label is used for both, as in the Penn Treebank.

    Args:
        words: the words, separated by white space.
        tags: the tags, separated by white space.

    Returns:
        The tree on one line, `(TOP ...)`.

    Raises:
        UserError: a constituent ends that has not begun or has nothing in it, there
            are not as many parts of speech as words, or a bracket stands in either.
    """
    if found := _BRACKETED.search(f"{words} {tags}"):
        raise UserError(
            f"{found[0]!r} cannot stand in a tree: write -LRB- and -RRB- for brackets"
        )
    symbols = tags.split()
    beginnings = _beginnings(symbols)
    speech = [
        tag
        for place, tag in enumerate(symbols)
        if place not in beginnings and not tag.startswith("/")
    ]
    remaining = iter(words.split())
    if not speech or len(speech) != len(words.split()):
        raise _error(
            tags,
            f"there are {len(words.split())} words, but {len(speech)} parts of speech "
            f"or constituents without an end",
        )
    pieces = []
    for place, tag in enumerate(symbols):
        if tag.startswith("/"):
            pieces.append(")")
        elif place in beginnings:
            pieces.append(f" ({tag}")
        else:
            pieces.append(f" ({tag} {next(remaining)})")
    return f"({_ROOT}{''.join(pieces)})"


def _fault_of(
    match: re.Match[str], open_: list[tuple[str, int]], tags: list[str]
) -> str | None:
    """Returns what is wrong with the next piece of a tree, or None."""
    if match["stray"]:
        return f"the word {match[0]!r} has no part of speech of its own"
    if tags and not open_:
        return f"{match[0]!r} comes after its last closing bracket"
    if match["tag"] and not open_:
        return f"{match[0]!r} is in no constituent"
    if match["end"] and not open_:
        return "a closing bracket closes nothing"
    if match["end"] and open_[-1][1] == len(tags):
        return f"({open_[-1][0]}) has nothing in it"
    if match["label"] == "" and open_:
        return "an opening bracket has no label"
    return None


def _beginnings(symbols: list[str]) -> set[int]:
    """Finds the places of the tags that begin a constituent.

    Args:
        symbols: all tags of a tree.

    Raises:
        UserError: a constituent ends that has not begun or has nothing in it.
    """
    places = set()
    # From the end, where the tag with the slash comes first: the places of those
    # whose beginning is still to come, and whether something is in them.
    open_: list[tuple[int, bool]] = []
    for place in reversed(range(len(symbols))):
        tag = symbols[place]
        if tag.startswith("/"):
            open_.append((place, False))
            continue
        if open_ and open_[-1][1] and symbols[open_[-1][0]] == f"/{tag}":
            places.add(place)
            open_.pop()
        if open_:
            open_[-1] = (open_[-1][0], True)
    if open_:
        end = open_[-1][0]
        fault = f"{symbols[end]} (tag {end + 1}) ends what has not begun or is empty"
        raise _error(" ".join(symbols), fault)
    return places


def _error(tree: str, fault: str) -> UserError:
    """Returns an error that shows the tree's beginning and what is wrong with it."""
    shown = textwrap.shorten(tree, _SHOWN, placeholder=" ...")
    return UserError(f"not a well-formed tree, {shown!r}: {fault}.")
