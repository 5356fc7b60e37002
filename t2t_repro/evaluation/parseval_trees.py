"""Reads trees and parameters in EVALB's formats.

This parser accepts more than problems/trees.py: several trees in a line, and empty
labels and words. It reports a malformed tree in the result instead of raising an error.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass, field
from typing import Any

from t2t_repro.system.atomic_file import iterate_lines
from t2t_repro.system.errors import UserError

# White space is defined as in C: a no-break space is part of a word.
_ELEMENT = re.compile(
    r"\((?P<tag>[^\s()]*)\s+(?P<word>[^\s()]*)\)"  # a word, which may be missing
    r"|\((?P<label>[^\s()]*)"
    r"|(?P<end>\))"
    r"|(?P<stray>[^\s()]+)",
    re.ASCII,
)
_FUNCTION = re.compile("[-=]")
_QUOTES = ("'", '"', "/")

Bracket = tuple[int, int, str]
"""Constituent: index of the first word, index after the last word, label."""


@dataclass(frozen=True)
class Parameters:
    """Parameters of EVALB; the defaults are those of COLLINS.prm."""

    # Labels of ignored brackets, and parts of speech of ignored words.
    deleted: frozenset[str] = frozenset(("TOP", "-NONE-", ",", ":", "``", "''", "."))
    # Parts of speech of words that do not count towards the length of a sentence.
    deleted_for_length: frozenset[str] = frozenset(("-NONE-",))
    # Pairs of labels, or parts of speech, that are considered equal.
    equal_labels: frozenset[tuple[str, str]] = frozenset((("ADVP", "PRT"),))
    # Pairs of words that are considered equal.
    equal_words: frozenset[tuple[str, str]] = frozenset()
    # Parts of speech of quotes that may be reinserted; see `reinsert_quotes`.
    quotes: frozenset[str] = frozenset()
    labelled: bool = True  # Whether to compare labels, or only spans.
    cutoff: int = 40  # Maximum number of words in a short sentence.

    def same_label(self, one: str, other: str) -> bool:
        """Returns whether two labels are considered equal."""
        return _same(one, other, self.equal_labels)

    def same_word(self, one: str, other: str) -> bool:
        """Returns whether two words are considered equal."""
        return _same(one, other, self.equal_words)

    def is_deleted(self, label: str) -> bool:
        """Returns whether brackets with this label are ignored."""
        return any(self.same_label(label, other) for other in self.deleted)


@dataclass(frozen=True)
class Quote:
    """Quote that may be deleted as punctuation in one of two trees."""

    index: int  # Number of scored words before the quote.
    word: str  # Text of the quote.
    tag: str  # Part of speech.
    brackets: int  # Number of brackets that begin before the quote.
    open: tuple[int, ...]  # Indices of the ones that end after the quote.


@dataclass
class Sentence:
    """Words and brackets of a tree, ready for scoring."""

    words: list[str] = field(default_factory=list)  # Scored words.
    tags: list[str] = field(default_factory=list)  # Their parts of speech.
    # All constituents in the order of their beginnings, without functional tags.
    brackets: list[Bracket] = field(default_factory=list)
    quotes: list[Quote] = field(default_factory=list)  # Those that may be reinserted.
    # Number of words, except for parts of speech in `deleted_for_length`.
    length: int = 0
    fault: str | None = None  # Description of the first syntax error, or None.

    def counted_brackets(self, parameters: Parameters) -> list[Bracket]:
        """Returns the brackets that contain words and have no deleted label."""
        return [
            (start, end, label)
            for start, end, label in self.brackets
            if start < end and not parameters.is_deleted(label)
        ]


def read_sentence(line: str, parameters: Parameters) -> Sentence:
    """Parses a line with any number of trees, usually one.

    Every word needs a part of speech. If the line is malformed, the result has a
    `fault` and all words and brackets that could be parsed.
    """
    sentence = Sentence()
    words, brackets = sentence.words, sentence.brackets
    open_: list[int] = []
    for match in _ELEMENT.finditer(line):
        tag, word = match["tag"], match["word"]
        if tag is not None:
            sentence.length += tag not in parameters.deleted_for_length
            if tag in parameters.quotes and word in _QUOTES:
                quote = Quote(len(words), word, tag, len(brackets), tuple(open_))
                sentence.quotes.append(quote)
            if tag not in parameters.deleted:
                words.append(word)
                sentence.tags.append(tag)
        elif match["label"] is not None:
            # Functional tags (NP-SBJ, NP=2) are not compared.
            label = _FUNCTION.split(match["label"], maxsplit=1)[0]
            open_.append(len(brackets))
            brackets.append((len(words), len(words), label))
        elif match["end"] and open_:
            start, _, label = brackets[open_[-1]]
            brackets[open_.pop()] = (start, len(words), label)
        elif sentence.fault is None:
            fault = f"{match[0]!r} is not in brackets"
            if match["end"]:
                fault = "unmatched closing bracket"
            sentence.fault = f"{fault} (character {match.start() + 1})"
    if open_ and sentence.fault is None:
        sentence.fault = "closing brackets are missing"
    return sentence


def reinsert_quotes(
    gold: Sentence, test: Sentence, parameters: Parameters
) -> tuple[Sentence, Sentence]:
    """Reinserts quotes that were deleted in only one of two trees.

    A quote with a punctuation tag is deleted, but one with a possessive tag is not, so
    that the sentences seem to differ in length. COLLINS.prm does not define quote tags,
    so this function then returns the sentences unchanged.
    """
    for test_number in range(len(test.quotes)):
        index = test.quotes[test_number].index
        for gold_number in range(len(gold.quotes)):
            gold_quote, test_quote = gold.quotes[gold_number], test.quotes[test_number]
            if gold_quote.index != index or gold_quote.tag == test_quote.tag:
                continue
            gold_deleted = gold_quote.tag in parameters.deleted
            test_deleted = test_quote.tag in parameters.deleted
            if gold_deleted and not test_deleted:
                gold = _reinsert_quote(gold, gold_number)
            elif test_deleted and not gold_deleted:
                test = _reinsert_quote(test, test_number)
    return gold, test


def _reinsert_quote(sentence: Sentence, quote_number: int) -> Sentence:
    """Returns the sentence with one of its quotes as a scored word."""
    quote = sentence.quotes[quote_number]
    index = quote.index
    brackets = [
        (
            start + (number >= quote.brackets),
            end + (number >= quote.brackets or number in quote.open),
            label,
        )
        for number, (start, end, label) in enumerate(sentence.brackets)
    ]
    quotes = [
        dataclasses.replace(each, index=each.index + (number >= quote_number))
        for number, each in enumerate(sentence.quotes)
    ]
    return dataclasses.replace(
        sentence,
        words=[*sentence.words[:index], quote.word, *sentence.words[index:]],
        tags=[*sentence.tags[:index], quote.tag, *sentence.tags[index:]],
        brackets=brackets,
        quotes=quotes,
    )


def read_parameters(path: str) -> Parameters:
    """Reads an EVALB parameter file (`*.prm`).

    Sets of labels and words that the file does not mention are empty, instead of those
    of COLLINS.prm. DEBUG and MAX_ERROR are ignored.

    Raises UserError if a line is not an EVALB parameter.
    """
    sets: dict[str, set[Any]] = {name: set() for name in (*_LABELS, *_PAIRS)}
    numbers = {"LABELED": 1, "CUTOFF_LEN": 40}
    for number, line in enumerate(iterate_lines(path), 1):
        name, *values = line.split()[:3] or [""]
        if line.startswith("#") or not name:
            continue
        if name in _LABELS and len(values) == 1:
            sets[name].add(values[0])
        elif name in _PAIRS and len(values) == 2:
            sets[name].add(tuple(values))
        elif name in numbers and len(values) == 1 and values[0].isdecimal():
            numbers[name] = int(values[0])
        elif name not in _IGNORED:
            raise UserError(
                f"{path}:{number}: {line.strip()!r} is not a line of an EVALB "
                "parameter file, such as DELETE_LABEL TOP or EQ_LABEL ADVP PRT"
            )
    return Parameters(
        deleted=frozenset(sets["DELETE_LABEL"]),
        deleted_for_length=frozenset(sets["DELETE_LABEL_FOR_LENGTH"]),
        equal_labels=frozenset(sets["EQ_LABEL"]),
        equal_words=frozenset(sets["EQ_WORD"]),
        quotes=frozenset(sets["QUOTE_LABEL"]),
        labelled=numbers["LABELED"] != 0,
        cutoff=numbers["CUTOFF_LEN"],
    )


_LABELS = ("DELETE_LABEL", "DELETE_LABEL_FOR_LENGTH", "QUOTE_LABEL")
_PAIRS = ("EQ_LABEL", "EQ_WORD")
_IGNORED = ("DEBUG", "MAX_ERROR")


def _same(one: str, other: str, pairs: frozenset[tuple[str, str]]) -> bool:
    return one == other or (one, other) in pairs or (other, one) in pairs
