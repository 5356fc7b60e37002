"""Any output of a parser becomes a tree over exactly the words that were parsed.

A model writes tags freely: brackets need not match, and there may be more or fewer
parts of speech than words. The repair keeps as much of the output as it can:

1. An end closes the innermost open constituent of its label and all inside of that;
   one without such a constituent is dropped, and what is open at the end is closed.
   Where a label could as well be a part of speech, the Penn Treebank's labels decide.
2. Words and parts of speech are aligned with the fewest changes that leave punctuation
   its own tags and other words none of these. A part of speech without a word goes. A
   word without one stands behind the word before it, as punctuation or as `NN`.
3. A constituent with nothing in it goes. If nothing is left, the words are an `S`.

An output that is a tree over the words, punctuation tagged as such, is left as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from t2t_repro.problems.trees import (
    Kind,
    Mark,
    parts_of_speech,
    read_tags,
    spell,
    tags_of,
    without_empty,
)
from t2t_repro.system.errors import UserError

# The labels of constituents (Bies et al. 1995, Bracketing Guidelines, section 1.1).
_LABELS = frozenset(
    str.split(
        "ADJP ADVP CONJP FRAG INTJ LST NAC NP NX PP PRN PRT QP RRC S SBAR SBARQ SINV "
        "SQ TOP UCP VP WHADJP WHADVP WHNP WHPP X"
    )
)
# Punctuation whose part of speech cannot be another. It matters: EVALB deletes words
# of these tags, so with one of them misplaced the sentences differ in length.
_PUNCTUATION = {
    ",": ",",
    **dict.fromkeys((".", "?", "!"), "."),
    **dict.fromkeys((":", ";", "--", "...", "-"), ":"),
    **dict.fromkeys(("``", "`"), "``"),
    "''": "''",
}
_PUNCTUATION_TAGS = frozenset(_PUNCTUATION.values())
_DEFAULT_TAG = "NN"
# The costs of an alignment: a word or a part of speech left alone, and two joined that
# do not suit each other, which is cheaper than leaving both alone.
_ALONE, _UNSUITABLE = 2, 3
# Words and tags that are aligned, so that nothing exhausts time and memory; the longest
# sentence of the treebank's first hundred files has 249 words.
_MOST_ALIGNED = 500


class Repair(NamedTuple):
    """A tree, and what had to be done for it."""

    tree: str  # In brackets, over exactly the words.
    brackets: bool  # Whether constituents did not match or were empty.
    tags: bool  # Whether parts of speech did not suit the words.

    @property
    def needed(self) -> bool:
        """Whether anything had to be done."""
        return self.brackets or self.tags


def repair(words: Sequence[str], tags: Sequence[str]) -> Repair:
    """Makes a tree of a model's output, which may be any tags (see trees.py).

    No word, or one that is empty or has white space or brackets (see `escaped`), is a
    ValueError.
    """
    if not words or any(
        word.split() != [word] or word != escaped(word) for word in words
    ):
        raise ValueError(f"these are no words of a sentence: {list(words)!r:.200}")
    usable = [tag for tag in tags if tag == escaped(tag)]
    marks = _read(usable, len(words))
    brackets = marks is None or len(usable) < len(tags)
    if marks is None:
        marks = _balanced(usable)
        # The number of words alone may be what was wrong.
        brackets = len(usable) < len(tags) or tags_of(marks) != usable
        brackets = brackets or without_empty(marks) != marks
    speech = parts_of_speech(marks)
    unsuitable = len(speech) != len(words) or not all(map(_suits, words, speech))
    if unsuitable:
        marks = _fitted(marks, words)
    return Repair(spell(without_empty(marks), words), brackets, unsuitable)


def escaped(word: str) -> str:
    """Returns a word with brackets as the treebank writes them."""
    return word.replace("(", "-LRB-").replace(")", "-RRB-")


def _read(tags: Sequence[str], words: int) -> list[Mark] | None:
    """Reads tags that are a tree of so many words; None if they are none."""
    try:
        marks = read_tags(tags)
    except UserError:
        return None
    speech = parts_of_speech(marks)
    return marks if len(speech) == words and not _LABELS.intersection(speech) else None


def _balanced(tags: Sequence[str]) -> list[Mark]:
    """Reads tags that are no tree so that constituents match; some may be empty."""
    counts = Counter(tags)
    marks: list[Mark] = []
    open_: list[str] = []
    for tag in tags:
        label = tag.removeprefix("/")
        if label != tag:
            while label in open_:
                marks.append(Mark(Kind.END, open_.pop()))
                if marks[-1].label == label:
                    break
        elif tag in _LABELS or counts[f"/{tag}"] >= counts[tag]:
            marks.append(Mark(Kind.BEGIN, tag))
            open_.append(tag)
        else:
            marks.append(Mark(Kind.WORD, tag))
    return marks + [Mark(Kind.END, label) for label in reversed(open_)]


def _fitted(marks: Sequence[Mark], words: Sequence[str]) -> list[Mark]:
    """Gives every word a part of speech, and takes away those that are too many."""
    word_of = {tag: word for word, tag in _aligned(words, parts_of_speech(marks))}
    if not word_of:
        flat = [Mark(Kind.WORD, _tag(word)) for word in words]
        return [Mark(Kind.BEGIN, "S"), *flat, Mark(Kind.END, "S")]
    # Words without a part of speech stand behind the one before them; those before
    # all others have none, and stand before the first.
    ends = dict(pairwise([*sorted(word_of.values()), len(words)]))
    done = place = 0  # Words that have their mark, parts of speech that were passed.
    fitted: list[Mark] = []
    for mark in marks:
        if mark.kind is not Kind.WORD:
            fitted.append(mark)
            continue
        if place in word_of:
            at = word_of[place]
            tags = [_tag(word) for word in words[done : ends[at]]]
            if _suits(words[at], mark.label):
                tags[at - done] = mark.label
            fitted += [Mark(Kind.WORD, tag) for tag in tags]
            done = ends[at]
        place += 1
    return fitted


def _aligned(words: Sequence[str], speech: Sequence[str]) -> list[tuple[int, int]]:
    """Aligns words with parts of speech, in order; returns pairs of their places."""
    words, speech = words[:_MOST_ALIGNED], speech[:_MOST_ALIGNED]
    costs = [_ALONE * column for column in range(len(speech) + 1)]
    # For each word and tag the last step of the best way there.
    steps: list[bytes] = []
    for row, word in enumerate(words, 1):
        diagonal, costs[0] = costs[0], _ALONE * row
        step = bytearray(len(speech))
        for column, tag in enumerate(speech, 1):
            # Of equally cheap ways the first leaves alone what is later: the beginning
            # of an output then depends on fewer of its mistakes.
            ways = (
                costs[column] + _ALONE,  # the word alone
                costs[column - 1] + _ALONE,  # the tag alone
                diagonal + (0 if _suits(word, tag) else _UNSUITABLE),
            )
            diagonal, costs[column] = costs[column], min(ways)
            step[column - 1] = ways.index(costs[column])
        steps.append(bytes(step))
    pairs = []
    row, column = len(words), len(speech)
    while row and column:
        alone = steps[row - 1][column - 1]
        row -= alone != 1
        column -= alone != 0
        if alone == 2:
            pairs.append((row, column))
    return pairs


def _suits(word: str, tag: str) -> bool:
    """Whether a part of speech may be a word's, as far as punctuation goes."""
    if word in _PUNCTUATION:
        return tag == _PUNCTUATION[word]
    # An apostrophe is a quote or a possessive.
    return word == "'" or tag not in _PUNCTUATION_TAGS


def _tag(word: str) -> str:
    """Returns the part of speech of a word for which there is none."""
    return _PUNCTUATION.get(word, _DEFAULT_TAG)
