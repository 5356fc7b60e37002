"""Repairs the output of a parsing model to a tree over exactly the parsed words.

In the output of a model, constituents may be unbalanced, and the number of parts of
speech may differ from the number of words. The repair changes as little as possible:

1. An end tag closes the innermost open constituent with its label, and all constituents
   inside it. An unmatched end tag is removed. Constituents still open after the last
   tag are closed. A tag that may be a label or a part of speech is a label if it is a
   constituent label of the Penn Treebank.
2. Words and parts of speech are aligned with the fewest changes such that punctuation,
   and only punctuation, has tags of punctuation. Surplus parts of speech are removed. A
   word without a part of speech follows the previous word and is tagged as punctuation
   or `NN`.
3. Empty constituents are removed. If no constituent remains, the words form an `S`.

An output that is already a tree over the words, with correctly tagged punctuation, is
unchanged.
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
    remove_empty,
    spell,
    write_tags,
)
from t2t_repro.system.errors import UserError

# Constituent labels (Bies et al. 1995, Bracketing Guidelines, section 1.1).
_LABELS = frozenset(
    str.split(
        "ADJP ADVP CONJP FRAG INTJ LST NAC NP NX PP PRN PRT QP RRC S SBAR SBARQ SINV "
        "SQ TOP UCP VP WHADJP WHADVP WHNP WHPP X"
    )
)
# Punctuation with only one possible part of speech. EVALB deletes words with these
# tags, so a misplaced tag would change the length of the sentence that it scores.
_PUNCTUATION = {
    ",": ",",
    **dict.fromkeys((".", "?", "!"), "."),
    **dict.fromkeys((":", ";", "--", "...", "-"), ":"),
    **dict.fromkeys(("``", "`"), "``"),
    "''": "''",
}
_PUNCTUATION_TAGS = frozenset(_PUNCTUATION.values())
_DEFAULT_TAG = "NN"
# Costs of an alignment: an unaligned word or part of speech, and an aligned pair that
# does not fit, which is cheaper than two unaligned elements.
_UNALIGNED, _MISFIT = 2, 3
# Maximum number of words and tags to align, to bound time and memory. The longest
# sentence in the first hundred files of the treebank has 249 words.
_MAX_ALIGNED = 500


class Repair(NamedTuple):
    """Repaired tree and the kinds of repair."""

    tree: str  # Bracketed tree over exactly the words.
    brackets: bool  # Whether constituents were unbalanced or empty.
    tags: bool  # Whether parts of speech did not fit the words.

    @property
    def needed(self) -> bool:
        """Whether the output was changed."""
        return self.brackets or self.tags


def repair(words: Sequence[str], tags: Sequence[str]) -> Repair:
    """Converts the output of a parsing model to a tree.

    Args:
        words: Words of the sentence, with brackets replaced as by `escape_brackets`.
        tags: Output of the model (see trees.py for the format), possibly malformed.

    Raises:
        ValueError: The list or a word is empty, or a word contains white space or
            brackets.
    """
    if not words or any(
        word.split() != [word] or word != escape_brackets(word) for word in words
    ):
        raise ValueError(
            "words must be a non-empty list of words without white space or brackets, "
            f"not {list(words)!r:.200}"
        )
    usable = [tag for tag in tags if tag == escape_brackets(tag)]
    marks = _read(usable, len(words)) or _balance(usable)
    brackets = write_tags(marks) != [*tags] or remove_empty(marks) != marks
    speech = parts_of_speech(marks)
    misfit = len(speech) != len(words) or not all(map(_fits, words, speech))
    if misfit:
        marks = _fit_tags(marks, words)
    return Repair(spell(remove_empty(marks), words), brackets, misfit)


def escape_brackets(word: str) -> str:
    """Returns a word with its brackets replaced by `-LRB-` and `-RRB-`."""
    return word.replace("(", "-LRB-").replace(")", "-RRB-")


def _read(tags: Sequence[str], words: int) -> list[Mark] | None:
    """Returns the marks if the tags are a tree over this number of words, else None."""
    try:
        marks = read_tags(tags)
    except UserError:
        return None
    speech = parts_of_speech(marks)
    return marks if len(speech) == words and not _LABELS.intersection(speech) else None


def _balance(tags: Sequence[str]) -> list[Mark]:
    """Returns marks with balanced constituents, some of which may be empty."""
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


def _fit_tags(marks: Sequence[Mark], words: Sequence[str]) -> list[Mark]:
    """Returns the marks with exactly one part of speech for each word."""
    # Parts of speech of words that the model did not tag.
    defaults = [_PUNCTUATION.get(word, _DEFAULT_TAG) for word in words]
    word_of = {tag: word for word, tag in _align(words, parts_of_speech(marks))}
    if not word_of:
        flat = [Mark(Kind.WORD, tag) for tag in defaults]
        return [Mark(Kind.BEGIN, "S"), *flat, Mark(Kind.END, "S")]
    # Unaligned words are inserted after the previous aligned word, or before the first
    # aligned word.
    ends = dict(pairwise([*sorted(word_of.values()), len(words)]))
    # Number of words with a mark, and index of the next part of speech.
    start = tag_index = 0
    fitted: list[Mark] = []
    for mark in marks:
        if mark.kind is not Kind.WORD:
            fitted.append(mark)
            continue
        if tag_index in word_of:
            aligned = word_of[tag_index]
            tags = defaults[start : ends[aligned]]
            if _fits(words[aligned], mark.label):
                tags[aligned - start] = mark.label
            fitted += [Mark(Kind.WORD, tag) for tag in tags]
            start = ends[aligned]
        tag_index += 1
    return fitted


def _align(words: Sequence[str], speech: Sequence[str]) -> list[tuple[int, int]]:
    """Aligns words with parts of speech monotonically.

    Returns:
        Index pairs (word, part of speech) in descending order.
    """
    words, speech = words[:_MAX_ALIGNED], speech[:_MAX_ALIGNED]
    costs = [_UNALIGNED * column for column in range(len(speech) + 1)]
    # Last step of the cheapest alignment of each prefix pair: index into `options`.
    steps: list[list[int]] = []
    for row, word in enumerate(words, 1):
        diagonal, costs[0] = costs[0], _UNALIGNED * row
        steps.append([])
        for column, tag in enumerate(speech, 1):
            # Ties leave later elements unaligned, so that mistakes affect less of the
            # beginning of the tree.
            options = (
                costs[column] + _UNALIGNED,  # unaligned word
                costs[column - 1] + _UNALIGNED,  # unaligned tag
                diagonal + (0 if _fits(word, tag) else _MISFIT),
            )
            diagonal, costs[column] = costs[column], min(options)
            steps[-1].append(options.index(costs[column]))
    pairs = []
    row, column = len(words), len(speech)
    while row and column:
        step = steps[row - 1][column - 1]
        row -= step != 1
        column -= step != 0
        if step == 2:
            pairs.append((row, column))
    return pairs


def _fits(word: str, tag: str) -> bool:
    """Returns whether a tag fits a word.

    Punctuation needs its own tag, which no other word may have.
    """
    if word in _PUNCTUATION:
        return tag == _PUNCTUATION[word]
    # An apostrophe is a quote or a possessive.
    return word == "'" or tag not in _PUNCTUATION_TAGS
