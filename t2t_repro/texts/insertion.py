"""Insertion of placeholders into a translation, guided by a word alignment.

A placeholder goes where it crosses the fewest alignment links; links of near words
count more than those of distant ones. A pair of tags encloses the translation of the
words between them. Pairs are placed as a tree, so that they remain nested.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from t2t_repro.tokenizers.token_spans import UNSPACED, WORD

# Conversions that take the next argument of a call, such as `%s`, perhaps in quotes.
_UNNUMBERED = re.compile(r"[\W_]{0,2}?(?:%(?![%({<]|\d+\$)|\{\}|\{:)")

# Value of being next to the translation of a neighbor, in crossed links.
_MEETING = 1.25


class Placeholder(NamedTuple):
    """A placeholder that was removed from a source.

    Attributes:
        text: The placeholder, with the quotes or brackets directly around it.
        word: Number of source words before it.
        partner: Index of the other tag of its pair; None if it is not one of a pair.
        before: White space before it.
        after: White space after it.
    """

    text: str
    word: int
    partner: int | None
    before: str
    after: str


def insert(
    placeholders: Sequence[Placeholder],
    source: str,
    translation: str,
    pairs: set[tuple[int, int]],
    spaced: bool = False,
) -> str:
    """Inserts the placeholders of a source into its translation.

    Arguments without a number, such as `%s`, remain in the order of the source.

    Args:
        placeholders: Placeholders, in order.
        source: Source without placeholders.
        translation: Translation without placeholders.
        pairs: Aligned words, by the pattern `WORD`: indices of source and target.
            Without pairs, positions are proportional.
        spaced: Whether to put spaces around every placeholder.
    """
    matches = list(re.finditer(WORD, translation))
    target = [match[0] for match in matches]
    words = re.findall(WORD, source)
    links = _Links(words, target, pairs)
    (first, last), (source_first, source_last) = map(_trim, (target, words))
    order = list(_place(placeholders, links, 0, len(placeholders), 0, len(target)))
    unnumbered = {n for n, p in enumerate(placeholders) if _UNNUMBERED.match(p.text)}
    in_order = iter(sorted(unnumbered))
    at_gap: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for gap, n in order:
        text = placeholders[next(in_order) if n in unnumbered else n].text
        at_gap[gap].append((n, text))

    def find_space(n: int, gap: int, between: str, is_after: bool) -> str:
        """Returns the space between a placeholder and the adjacent word."""
        each = placeholders[n]
        if gap == (len(target) if is_after else 0):
            return ""
        if spaced:
            return " "
        space = each.after if is_after else each.before
        word = gap if is_after else gap - 1
        # Outside of all words in both lines, the source determines the space.
        if is_after:
            marks, source_marks = first - gap, source_first - each.word
        else:
            marks, source_marks = gap - last, each.word - source_last
        if marks >= 0 and source_marks >= 0:
            # Without the mark that separates them, it would be attached to a word.
            is_missing = source_marks and not marks
            if not (_is_unspaced(target[word]) if space else is_missing):
                return space
        if each.partner is not None:
            return space if is_after == (each.partner > n) else between
        if not space and (each.word + word - gap, word) in links.pairs:
            return ""
        # An opening mark is attached to the next word, a closing one to the last word.
        attached = _is_mark(target[word])
        if not is_after:
            attached &= gap < len(target) and not _is_mark(target[gap])
        return "" if not between and (attached or _is_unspaced(target[word])) else " "

    def middle(n: int, m: int, between: str) -> str:
        one, other = placeholders[n], placeholders[m]
        if m == n + 1 and one.word == other.word and not spaced:
            return other.before
        opens = one.partner is not None and one.partner > n
        closes = other.partner is not None and other.partner < m
        if (opens or closes) and not spaced:
            return ""
        both_tags = one.partner is not None and other.partner is not None
        return between if both_tags else " "

    ends = [0, *(match.end() for match in matches)]
    starts = [*(match.start() for match in matches), len(translation)]
    pieces = []
    for gap, (end, start) in enumerate(zip(ends, starts, strict=True)):
        between, here = translation[end:start], at_gap[gap]
        if here:
            pieces.append(find_space(here[0][0], gap, between, is_after=False))
            for (n, text), (m, _) in pairwise(here):
                pieces += [text, middle(n, m, between)]
            pieces.append(here[-1][1])
            pieces.append(find_space(here[-1][0], gap, between, is_after=True))
        else:
            pieces.append(between)
        pieces += target[gap : gap + 1]
    return "".join(pieces)


class _Links:
    """Alignment of a source and its translation.

    Args:
        source: Words of the source.
        target: Words of the translation.
        pairs: Aligned words. Punctuation marks are aligned by their order instead, if
            they occur equally often on both sides.
    """

    def __init__(
        self, source: Sequence[str], target: Sequence[str], pairs: set[tuple[int, int]]
    ) -> None:
        # Attention often rests on punctuation while words are translated.
        self.pairs = {
            (s, t) for s, t in pairs if not (_is_mark(source[s]) or _is_mark(target[t]))
        }
        if pairs:
            self.pairs |= _align_marks(source, target)
        self._num_source, self._words = len(source), len(target)
        self._ratio = len(target) / max(len(source), 1)
        links = np.array(sorted(self.pairs), np.int64).reshape(-1, 2)
        self._source, self._target = links.T

    def gap(self, each: Placeholder) -> int:
        """Returns the number of target words before a placeholder."""
        if each.word in (0, self._num_source):  # It remains at this end of the line.
            return self._words if each.word else 0
        gaps = np.arange(self._words + 1)[:, None]
        costs = 1e-6 * abs(gaps[:, 0] - each.word * self._ratio)
        for side, is_glued in (
            (range(each.word - 1, -1, -1), not each.before),
            (range(each.word, self._num_source), not each.after),
        ):
            before = side.step < 0
            near = 4.0 if is_glued else 1.0  # A word without a space in between.
            for distance, word in enumerate(side[:40]):
                targets = self._target[self._source == word]
                weight = near if distance == 0 else 0.5**distance
                crossed = targets >= gaps if before else targets < gaps
                costs += weight * crossed.sum(axis=1)
                if distance == 0:
                    meets = (targets == gaps) | (targets == gaps - 1)
                    costs -= _MEETING * near * meets.any(axis=1)
        return int(np.argmin(costs))

    def span(self, first: int, last: int) -> tuple[int, int]:
        """Returns the range of target words for the source words [first, last).

        It maximizes the number of words that are aligned with these source words, minus
        the number of the others.
        """
        inside = (self._source >= first) & (self._source < last)
        # A word that is aligned with words on both sides counts as inside.
        votes = np.bincount(self._target, np.where(inside, 1, -0.9), self._words)
        sums = np.cumsum([0.0, *np.sign(votes)])
        # Equal ranges: the shortest is taken, then the most proportional one.
        places = np.arange(len(sums))
        totals = sums - 1e-4 * places
        lowest = np.minimum.accumulate(totals)
        last_lowest = np.maximum.accumulate(np.where(totals == lowest, places, 0))
        gains = totals[1:] - lowest[:-1]
        ends = 1 + np.flatnonzero(gains > gains.max(initial=0) - 1e-6)
        starts = last_lowest[ends - 1]
        shifts = abs(starts + ends - (first + last) * self._ratio)
        start, end = min(zip(shifts, starts, ends, strict=True), default=(0, 0, 0))[1:]
        if sums[end] <= sums[start]:  # No word is aligned with them.
            start = int(first * self._ratio)
            end = max(start + 1, round(last * self._ratio))
        return int(start), int(end)


def _align_marks(source: Sequence[str], target: Sequence[str]) -> set[tuple[int, int]]:
    """Aligns punctuation marks that occur equally often, and those at the end."""
    pairs = set()
    if source and target and _is_mark(source[-1]) and _is_mark(target[-1]):
        pairs.add((len(source) - 1, len(target) - 1))
    for mark in set(filter(_is_mark, target)):
        places = [
            [n for n, w in enumerate(side) if w == mark] for side in (source, target)
        ]
        if len(places[0]) == len(places[1]):
            pairs |= set(zip(*places, strict=True))
    return pairs


def _is_mark(word: str) -> bool:
    return not any(map(str.isalnum, word))


def _trim(words: Sequence[str]) -> tuple[int, int]:
    """Returns the range of the words without the marks at both ends."""
    numbers = [n for n, word in enumerate(words) if not _is_mark(word)]
    return (numbers[0], numbers[-1] + 1) if numbers else (len(words), 0)


def _is_unspaced(word: str) -> bool:
    return re.fullmatch(f"[{UNSPACED}]", word) is not None


def _place(
    placeholders: Sequence[Placeholder],
    links: _Links,
    first: int,
    last: int,
    low: int,
    high: int,
) -> Iterator[tuple[int, int]]:
    """Places the placeholders [first, last) between the target words [low, high).

    Yields:
        The number of target words before a placeholder, and its index, in the order of
        the translation.
    """
    spans, singles = [], []
    n = first
    while n < last:
        close = placeholders[n].partner or n
        words = placeholders[n].word, placeholders[close].word
        if words[0] < words[1]:
            spans.append((*np.clip(links.span(*words), low, high).tolist(), n, close))
        else:
            gap = min(max(links.gap(placeholders[n]), low), high)
            singles.append((gap, n, close))
        n = close + 1
    nodes = []
    for start, end, n, close in sorted(spans):
        start = max(start, low)
        low = max(start, end)  # Pairs must not overlap.
        nodes.append((start, low, n, close))
    pair_nodes = tuple(nodes)
    for gap, n, close in singles:
        for start, end, opening, _ in pair_nodes:
            if start < gap < end:  # It is not between these tags in the source.
                gap = start if n < opening else end
        nodes.append((gap, gap, n, close))
    for start, end, n, close in sorted(nodes):
        yield start, n
        if close > n:
            yield from _place(placeholders, links, n + 1, close, start, end)
            yield end, close
