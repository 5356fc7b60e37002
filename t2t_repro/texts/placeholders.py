"""Placeholders and tags, which translations keep unchanged.

A line is translated without its placeholders, exactly as if it had none. They are then
inserted next to the translations of their neighbors. Constraints on the search would
keep them, too, but would change the words around them.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from t2t_repro.system.errors import UserError
from t2t_repro.texts.insertion import Placeholder, insert
from t2t_repro.texts.placeholder_patterns import (
    ALL,
    PRESETS,
    Span,
    compile_pattern,
    find,
)
from t2t_repro.texts.translation import Translation
from t2t_repro.tokenizers.token_spans import CLOSING, OPENING, UNSPACED, WORD

# Opening and closing tags: `<b>`, `</b>`, `[url=x]`, `{/if}`.
_TAG = re.compile(r"([<\[{])(/?)([\w:.-]+).*[>\]}]", re.DOTALL)
# A placeholder keeps quotes and brackets that contain nothing else.
_AROUND = ("()", "[]", '""', "''", "\u201c\u201d", "\u201e\u201c", "\u00ab\u00bb")
_MOST_NESTED = 100  # Limits the recursion; other tags are not pairs.
_LETTER = re.compile(rf"(?![_{UNSPACED}])\w")

AlignWords = Callable[[Sequence[str], Sequence[str], str], list[set[tuple[int, int]]]]
"""Aligns the words of sentence pairs; see `Aligner.pairs`."""


class Line(NamedTuple):
    """A line without its placeholders.

    Attributes:
        text: Rest of the line; "" if the rest has neither letters nor digits.
        placeholders: Removed placeholders, in order.
    """

    text: str
    placeholders: list[Placeholder]


class Placeholders:
    """Removes placeholders from lines and inserts them into the translations.

    Args:
        patterns: Regular expressions, names of `PRESETS`, or `ALL`.
        name: Name of the patterns in messages.

    Attributes:
        fingerprint: SHA-256 of the regular expressions, in hexadecimal, and a colon; ""
            for none.

    Raises:
        UserError: A regular expression is invalid or matches the empty text.
    """

    def __init__(self, patterns: Sequence[str], name: str = "placeholders") -> None:
        self._patterns = [
            compile_pattern(each, name)
            for pattern in patterns
            for each in (PRESETS.values() if pattern == ALL else [pattern])
        ]
        texts = [each.pattern for each in self._patterns]
        digest = hashlib.sha256(repr(texts).encode())
        self.fingerprint = f"{digest.hexdigest()}:" if texts else ""

    def find(self, text: str) -> list[Span]:
        """Returns the spans of placeholders; of overlapping ones, the first longest.

        White space at the ends of a match is not a part of the placeholder. Adjacent
        characters are if the expression requires them, as `(?<=@)` does.
        """
        matches = {span for each in self._patterns for span in find(each, text)}
        spans: list[Span] = []
        for start, end in sorted(matches, key=lambda span: (span[0], -span[1])):
            if end > start >= (spans[-1][1] if spans else 0):
                spans.append((start, end))
        return spans

    def check_terms(self, terms: Mapping[str, str] | Sequence[Sequence[str]]) -> None:
        """Raises UserError if a target term of `RequiredTerms` has a placeholder.

        It would be removed from translations, unless the source term is the same.
        """
        if isinstance(terms, Mapping):
            terms = [[target for source, target in terms.items() if source != target]]
        for term in itertools.chain.from_iterable(terms):
            for start, end in self.find(term):
                raise UserError(
                    f"the term {term!r} contains the placeholder {term[start:end]!r}, "
                    "which translations have only where their lines have it; change "
                    "the term or the placeholders"
                )

    def remove(self, line: str, spans: Sequence[Span] | None = None) -> Line:
        """Removes the placeholders of a line, and the spaces that they leave behind.

        Args:
            line: The line.
            spans: Spans of its placeholders; None for those of `find`.
        """
        spans = self.find(line) if spans is None else spans
        if not spans:
            return Line(line, [])
        partners = pair_tags([line[start:end] for start, end in spans])
        spans = _add_quotes(line, spans)
        ends = [0, *(end for _, end in spans)]
        starts = [*(start for start, _ in spans), len(line)]
        texts = [line[e:s] for e, s in zip(ends, starts, strict=True)]
        rest = texts[0]
        offsets: list[int] = []
        for text, partner in zip(texts[1:], partners, strict=True):
            rest, added = _join(rest, text, partner is not None)
            offsets.append(len(rest))
            rest += added
        # The end of `rest` may have lost spaces after an offset was noted.
        offsets = list(itertools.accumulate(reversed(offsets), min))[::-1]
        if not texts[-1].strip():
            rest = rest.rstrip()
        if not any(map(str.isalnum, rest)):
            rest = ""
        word_starts = [match.start() for match in re.finditer(WORD, rest)]
        word_ends = [match.end() for match in re.finditer(WORD, rest)]
        placeholders = []
        for n, ((start, end), partner) in enumerate(zip(spans, partners, strict=True)):
            # Only an opening tag within a word precedes this word.
            if partner is not None and partner > n:
                word = bisect_right(word_ends, offsets[n])
            else:
                word = bisect_left(word_starts, offsets[n])
            before, after = texts[n], texts[n + 1]
            before, after = (
                before[len(before.rstrip()) :],
                after.removesuffix(after.lstrip()),
            )
            placeholders.append(
                Placeholder(line[start:end], word, partner, before, after)
            )
        return Line(rest, placeholders)

    def restore(
        self,
        lines: Sequence[str],
        removed: Sequence[Line],
        translations: Sequence[Translation],
        align: AlignWords,
    ) -> list[Translation]:
        """Inserts the placeholders of lines into all hypotheses.

        A line of only placeholders and punctuation is its own translation. Text of a
        translation that looks like a placeholder is removed.

        Args:
            lines: Lines with placeholders.
            removed: The same lines without them, from `remove`.
            translations: Translations of `removed`.
            align: Function that aligns the words of sentence pairs.
        """
        if not any(each.placeholders for each in removed):
            return list(translations)
        plain = [
            (n, self._remove_repeatedly(text))
            for n, each in enumerate(translations)
            if removed[n].placeholders and removed[n].text
            for text, *_ in each.hypotheses
        ]
        aligned = align(
            [removed[n].text for n, _ in plain], [text for _, text in plain], WORD
        )
        texts: dict[int, list[str]] = defaultdict(list)
        for (n, text), pairs in zip(plain, aligned, strict=True):
            texts[n].append(self._insert(lines[n], removed[n], text, pairs))
        restored = list(translations)
        for n, each in enumerate(translations):
            if removed[n].placeholders:
                restored[n] = each.replace_texts(*texts.get(n, [lines[n]]))
        return restored

    def _insert(
        self, line: str, removed: Line, text: str, pairs: set[tuple[int, int]]
    ) -> str:
        """Inserts the placeholders of a line into a translation."""
        source, placeholders = removed
        result = insert(placeholders, source, text, pairs)
        if self._texts(result) != self._texts(line):
            # A neighbor without a space in between became part of a placeholder.
            result = insert(placeholders, source, text, pairs, spaced=True)
        return result

    def _remove_repeatedly(self, text: str) -> str:
        """Removes placeholders until the rest no longer forms another one."""
        while self.find(text):
            text = self.remove(text).text
        return text

    def _texts(self, text: str) -> list[str]:
        return sorted(text[start:end] for start, end in self.find(text))


def pair_tags(texts: Sequence[str]) -> list[int | None]:
    """Returns the index of the other tag of each tag's pair; None if there is none."""
    partners: list[int | None] = [None] * len(texts)
    opened: list[tuple[int, tuple[str, str]]] = []
    for n, text in enumerate(texts):
        if not (tag := _TAG.fullmatch(text)):
            continue
        bracket, closes, name = tag.groups()
        if not closes:
            if len(opened) < _MOST_NESTED:
                opened.append((n, (bracket, name)))
            continue
        same = [k for k, (_, other) in enumerate(opened) if other == (bracket, name)]
        if same:
            opening = opened[same[-1]][0]
            partners[n], partners[opening] = opening, n
            del opened[same[-1] :]  # Tags without an end are not pairs.
    return partners


def _add_quotes(line: str, spans: Sequence[Span]) -> list[Span]:
    """Extends spans by quotes and brackets that enclose nothing else."""
    extended: list[Span] = []
    limits = [*(start for start, _ in spans[1:]), len(line)]
    for (start, end), high in zip(spans, limits, strict=True):
        low = extended[-1][1] if extended else 0
        while low < start and end < high and line[start - 1] + line[end] in _AROUND:
            start, end = start - 1, end + 1
        extended.append((start, end))
    return extended


def _join(left: str, right: str, in_pair: bool) -> tuple[str, str]:
    """Removes or adds a space where a placeholder was between two texts.

    `in_pair` is true for a tag of a pair, which may be within a word.
    """
    if not right:
        return left, right
    if not left.strip():
        return left, right.lstrip()
    if right[0].isspace():
        drop = left[-1].isspace() or left[-1] in OPENING
        return left, right.lstrip() if drop else right
    if left[-1].isspace():
        return left.rstrip() if right[0] in CLOSING else left, right
    if not in_pair and _LETTER.match(left[-1]) and _LETTER.match(right[0]):
        return f"{left} ", right
    return left, right
