"""Texts of documents, divided into the lines that a model translates."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence

from t2t_repro.formats.documents.codes import Code, Codes

# Punctuation at the end of a sentence, perhaps in quotes or brackets.
_FINAL = re.compile(
    r"[.!?:;\u2026\u3002\uff01\uff1f][\"'\u2019\u201c\u201d\u00bb)\]]*$"
)
_MARGIN = r"\s|[-\u2013\u2014*\u2022] |[\u2669-\u266c]"
_BRACKETS = re.compile(r"([(\[])([^()\[\]]+)([)\]])")
_UNSPACED = "\u3040-\u30ff\u3400-\u9fff"
# Tags and `{...}` are not divided. Chinese and Japanese need no spaces between words.
_WORD = re.compile(
    rf"[{_UNSPACED}][^\w\s<{{]*\s*|(?:<[^<>]*>|\{{[^{{}}]*\}}|[^\s{_UNSPACED}])+\s*"
)
_NO_WORDS = re.compile(r"<[^<>]*>|\{[^{}]*\}|%(?:\([^()\s]*\))?\w")
_MOST_LINES = 6  # Text without punctuation is not joined without limit.
_ICU = re.compile(
    r"\{\s*[\w.-]+\s*,\s*(plural|selectordinal|select)\s*,(?:\s*offset:\d+)?"
)
_BRANCH = re.compile(r"\s*(?:=\d+|[\w-]+)\s*\{")
_MOST_BRANCH = 2000  # Characters of a branch, which bounds the time.
_ICU_CODE = re.compile(r"('[{}#|][^']*'|#)")

Continues = Callable[[str, str], bool]
"""Returns whether a line, the second argument, continues the sentence of the first."""


def has_words(text: str) -> bool:
    """Returns whether a text has letters outside of tags and placeholders.

    A text with NUL or half of a surrogate pair, which cannot be translated, has none.
    """
    rest = _NO_WORDS.sub("", text)
    return any(map(str.isalpha, rest)) and not re.search(r"[\0\ud800-\udfff]", rest)


def continues_lower_case(last: str, line: str) -> bool:
    """Rule of texts whose lines may be items of a list."""
    return last.endswith(",") or line[:1].islower()


def continues_always(_: str, __: str) -> bool:
    """Rule of texts that are wrapped."""
    return True


class Sentence:
    """Lines that are translated together, because a sentence continues over them.

    Args:
        lines: Lines with stand-ins of codes.
        codes: The codes of the document.

    Attributes:
        text: Text to translate, in one line; "" if there are no words.
    """

    def __init__(self, lines: Sequence[str], codes: Codes) -> None:
        self._lines, self._codes = lines, codes
        self._peeled = [_peel(line, codes) for line in lines]
        cores = [core for _, core, _ in self._peeled]
        text = " ".join(" ".join(cores).split())
        text = re.sub(f"(?<=[{_UNSPACED}]) (?=[{_UNSPACED}])", "", text)
        self.text = text if has_words(codes.stand_in.sub("", text)) else ""

    def divide(self, translation: str) -> list[str]:
        """Returns the lines of a translation, as many as those of the source.

        Each line has the codes of its source line, and its share of the characters.
        """
        if translation == self.text:
            return list(self._lines)
        cores = [core for _, core, _ in self._peeled]
        own = [self._codes.stand_in.findall(core) for core in cores]
        in_order = sum(map(bool, own)) > 1
        text = self._codes.arrange(translation.strip(), self.text, in_order)
        starts = [match.start() for match in _WORD.finditer(text)] + [len(text)]
        sizes = [len(self._codes.show(core)) for core in cores]
        goals = itertools.accumulate(size / max(sum(sizes), 1) for size in sizes)
        cuts = [0]
        for number, goal in enumerate(itertools.islice(goals, len(cores) - 1), 1):
            low, high = self._limits(text, own, number)
            low = max(low, cuts[-1])
            places = starts[number : max(len(starts) + number - len(cores), 1)]
            places = places or [starts[min(number, len(starts) - 1)]]
            ends = [min(max(place, low), high) for place in places]
            cuts.append(min(ends, key=lambda end: abs(self._share(text, end) - goal)))
        return [
            lead + text[start:end].strip() + tail
            for (lead, _, tail), (start, end) in zip(
                self._peeled, itertools.pairwise([*cuts, len(text)]), strict=True
            )
        ]

    def _share(self, text: str, end: int) -> float:
        show = self._codes.show
        return len(show(text[:end])) / max(len(show(text)), 1)

    def _limits(
        self, text: str, own: Sequence[Sequence[str]], number: int
    ) -> tuple[int, int]:
        """Returns the range for a cut that keeps the codes of each line in it."""
        before = set(itertools.chain.from_iterable(own[:number]))
        low, high = 0, len(text)
        for match in self._codes.stand_in.finditer(text):
            if match[0] in before:
                low = match.end()
            else:
                high = min(high, match.start())
        return low, max(low, high)


def group_lines(lines: Sequence[str], codes: Codes, continues: Continues) -> list[int]:
    """Returns the numbers of lines of the sentences, or sequences of sentences.

    Args:
        lines: Lines with stand-ins of codes.
        codes: The codes of the document.
        continues: Rule for a line after one without punctuation at its end.
    """
    sizes: list[int] = []
    last = ""
    for line in lines:
        lead, core, tail = (codes.show(each) for each in _peel(line, codes))
        if (
            last
            and core
            and not lead.strip()
            and not _FINAL.search(last)
            and sizes[-1] < _MOST_LINES
            and continues(last, core)
        ):
            sizes[-1] += 1
        else:
            sizes.append(1)
        last = "" if tail.strip() else core
    return sizes


class Message:
    """A text of a document: lines, perhaps with the branches of ICU messages.

    Args:
        text: Text with stand-ins of codes.
        codes: The codes of the document.
        continues: Rule for lines that continue a sentence.

    Attributes:
        texts: Texts to translate, each in one line.
    """

    def __init__(self, text: str, codes: Codes, continues: Continues) -> None:
        self._continues = continues
        self._codes = codes
        self._branches: dict[str, list[str | Message]] = {}
        lines = self._take_branches(text).split("\n")
        self._sentences: list[Sentence] = []
        for size in group_lines(lines, codes, continues):
            self._sentences.append(Sentence(lines[:size], codes))
            del lines[:size]
        nested = itertools.chain.from_iterable(self._branches.values())
        self._nested = [each for each in nested if isinstance(each, Message)]
        self.texts: list[str] = [each.text for each in self._sentences if each.text]
        self.texts += itertools.chain.from_iterable(each.texts for each in self._nested)

    def join(self, translations: Iterator[str]) -> str:
        """Returns the translated text, with stand-ins.

        Args:
            translations: Iterator over the translations of `texts`, which is advanced
                by their number.
        """
        lines: list[str] = []
        for each in self._sentences:
            lines += each.divide(next(translations) if each.text else "")
        text = "\n".join(lines)
        for stand_in, parts in self._branches.items():
            joined = "".join(
                each if isinstance(each, str) else each.join(translations)
                for each in parts
            )
            text = text.replace(stand_in, joined)
        return text

    def _take_branches(self, text: str) -> str:
        """Replaces the selections of an ICU message by stand-ins."""
        outer, end = [], 0
        for match in _ICU.finditer(text):
            spans = _find_branches(text, match)
            if match.start() < end or not spans:
                continue
            parts: list[str | Message] = []
            start = match.start()
            for low, high in spans:
                branch = text[low:high]
                if match[1] != "select":
                    pieces = enumerate(_ICU_CODE.split(branch))
                    branch = self._codes.mark(
                        Code(each, shown=each) if n % 2 else each for n, each in pieces
                    )
                parts += [
                    text[start:low],
                    Message(branch, self._codes, self._continues),
                ]
                start = high
            close = text.index("}", start + 1) + 1
            stand_in = self._codes.mark([Code("", shown=text[match.start() : close])])
            self._branches[stand_in] = [*parts, text[start:close]]
            outer += [text[end : match.start()], stand_in]
            end = close
        return "".join([*outer, text[end:]])


def _find_branches(text: str, start: re.Match[str]) -> list[tuple[int, int]]:
    """Returns the spans of the branches of an ICU selection; [] if it is damaged."""
    spans = []
    place = start.end()
    while match := _BRANCH.match(text, place):
        depth, place = 1, match.end()
        limit = min(len(text), place + _MOST_BRANCH)
        while depth and place < limit:
            depth += {"{": 1, "}": -1}.get(text[place], 0)
            place += 1
        if depth:
            return []
        spans.append((match.end(), place - 1))
    return spans if re.match(r"\s*\}", text[place:]) else []


def _peel(line: str, codes: Codes) -> tuple[str, str, str]:
    """Splits a line into its beginning, its text and its end.

    The beginning and the end are white space, codes, dashes and brackets around the
    whole text.
    """
    lead = tail = ""
    name = codes.pattern.removeprefix("</?").removesuffix("/?>")
    margin = f"(?:{_MARGIN}|<{name}/>)+"
    pair = re.compile(rf"(<({name})>)(.*)(</\2>)", re.DOTALL)
    while True:
        if match := re.match(margin, line):
            lead, line = lead + match[0], line[match.end() :]
        elif match := re.search(rf"(?:[\u2669-\u266c]|<{name}/>|\s)\Z", line):
            start = len(line[: match.start()].rstrip())
            line, tail = line[:start], line[start:] + tail
        elif match := pair.fullmatch(line):
            lead, line, tail = lead + match[1], match[3], match[4] + tail
        elif match := _BRACKETS.fullmatch(line):
            lead, line, tail = lead + match[1], match[2], match[3] + tail
        else:
            return lead, line, tail
