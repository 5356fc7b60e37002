"""What EVALB reads of a tree, and the parameters that decide it.

It reads more than problems/trees.py does: any number of trees in a line, and empty
labels and words; a faulty tree lowers the score and is no error.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import Any

from t2t_repro.system.atomic_file import iterate_lines
from t2t_repro.system.errors import UserError

# White space is what C calls so: a no-break space is part of a word.
_PIECE = re.compile(
    r"\((?P<tag>[^\s()]*)\s+(?P<word>[^\s()]*)\)"  # a word, which may be missing
    r"|\((?P<label>[^\s()]*)"
    r"|(?P<end>\))"
    r"|(?P<stray>[^\s()]+)",
    re.ASCII,
)
_FUNCTION = re.compile("[-=]")
_QUOTES = ("'", '"', "/")

Bracket = tuple[int, int, str]
"""A constituent: its first word, the word after its last, its label."""


@dataclass(frozen=True)
class Parameters:
    """What is not counted, and what is equal; by default EVALB's COLLINS.prm."""

    # Labels whose brackets are not counted; words of such a part of speech are taken
    # out of the sentence.
    deleted: frozenset[str] = frozenset(("TOP", "-NONE-", ",", ":", "``", "''", "."))
    # Words of such a part of speech do not make it longer.
    deleted_for_length: frozenset[str] = frozenset(("-NONE-",))
    # Pairs of labels, or parts of speech, that count as the same.
    equal_labels: frozenset[tuple[str, str]] = frozenset((("ADVP", "PRT"),))
    # Pairs of words that count as the same.
    equal_words: frozenset[tuple[str, str]] = frozenset()
    # Parts of speech under which a quote may be mistaken for something that is deleted,
    # or the reverse; see `reinsert_quotes`.
    quotes: frozenset[str] = frozenset()
    labelled: bool = True  # Whether labels count; otherwise spans alone.
    cutoff: int = 40  # The most words of a short sentence.

    def same_label(self, one: str, other: str) -> bool:
        """Whether two labels count as the same."""
        return _same(one, other, self.equal_labels)

    def same_word(self, one: str, other: str) -> bool:
        """Whether two words count as the same."""
        return _same(one, other, self.equal_words)

    def is_deleted(self, label: str) -> bool:
        """Whether the brackets of a constituent are not counted."""
        return any(self.same_label(label, other) for other in self.deleted)


@dataclass(frozen=True)
class Quote:
    """A quote that is, or might have been, taken out of a sentence."""

    index: int  # Number of words before it that are counted.
    word: str  # Itself.
    tag: str  # Its part of speech.
    brackets: int  # Number of brackets that begin before it.
    open: tuple[int, ...]  # The numbers of those that end after it.


@dataclass(frozen=True)
class Sentence:
    """A tree as it is scored."""

    words: tuple[str, ...]  # Those that are counted.
    tags: tuple[str, ...]  # Their parts of speech.
    # Every constituent by its beginning, labels as they were written.
    brackets: tuple[Bracket, ...]
    length: int  # All words but those that `deleted_for_length` names.
    quotes: tuple[Quote, ...] = ()  # Those that may have to be reinserted.
    fault: str | None = None  # Why it is no tree, in a few words; None if it is one.

    def counted_brackets(self, parameters: Parameters) -> list[Bracket]:
        """Returns the brackets that count, without functional tags (NP-SBJ, NP=2).

        Those without words do not, nor do those of labels that are deleted.
        """
        bare = (
            (start, end, _FUNCTION.split(label, maxsplit=1)[0])
            for start, end, label in self.brackets
            if start < end
        )
        return [bracket for bracket in bare if not parameters.is_deleted(bracket[2])]


def read_sentence(line: str, parameters: Parameters) -> Sentence:
    """Reads a line of trees, usually one or none, with a part of speech at every word.

    Of a faulty one the sentence has as much as can be told.
    """
    words: list[str] = []
    tags: list[str] = []
    brackets: list[Bracket] = []
    open_: list[int] = []
    quotes: list[Quote] = []
    faults: list[str] = []
    length = 0
    for match in _PIECE.finditer(line):
        tag, word = match["tag"], match["word"]
        if tag is not None:
            length += tag not in parameters.deleted_for_length
            if tag in parameters.quotes and word in _QUOTES:
                quotes.append(Quote(len(words), word, tag, len(brackets), tuple(open_)))
            if tag not in parameters.deleted:
                words.append(word)
                tags.append(tag)
        elif match["label"] is not None:
            open_.append(len(brackets))
            brackets.append((len(words), len(words), match["label"]))
        elif match["end"] and open_:
            start, _, label = brackets[open_[-1]]
            brackets[open_.pop()] = (start, len(words), label)
        else:
            what = "a bracket too many closes"
            if not match["end"]:
                what = f"{match[0]!r} is no bracket"
            faults.append(f"{what} (character {match.start() + 1})")
    if open_:
        faults.append("closing brackets are missing")
    fault = faults[0] if faults else None
    return Sentence(
        tuple(words), tuple(tags), tuple(brackets), length, tuple(quotes), fault
    )


def reinsert_quotes(
    gold: Sentence, test: Sentence, parameters: Parameters
) -> tuple[Sentence, Sentence]:
    """Puts quotes back that were deleted in one tree only, where they are the same.

    A quote tagged as such is punctuation and deleted, one tagged as a possessive is
    not, and the sentences seem to differ in length. COLLINS.prm names no such tags.
    """
    for place in range(len(test.quotes)):
        index = test.quotes[place].index
        for other in range(len(gold.quotes)):
            theirs, ours = gold.quotes[other], test.quotes[place]
            if theirs.index != index or theirs.tag == ours.tag:
                continue
            gone = (theirs.tag in parameters.deleted, ours.tag in parameters.deleted)
            if gone == (True, False):
                gold = _reinserted(gold, other)
            elif gone == (False, True):
                test = _reinserted(test, place)
    return gold, test


def _reinserted(sentence: Sentence, place: int) -> Sentence:
    """Returns a sentence with one of its quotes as a word that is counted."""
    quote = sentence.quotes[place]
    at = quote.index
    brackets = [
        (
            start + (number >= quote.brackets),
            end + (number >= quote.brackets or number in quote.open),
            label,
        )
        for number, (start, end, label) in enumerate(sentence.brackets)
    ]
    moved = [
        dataclasses.replace(each, index=each.index + (number >= place))
        for number, each in enumerate(sentence.quotes)
    ]
    return dataclasses.replace(
        sentence,
        words=(*sentence.words[:at], quote.word, *sentence.words[at:]),
        tags=(*sentence.tags[:at], quote.tag, *sentence.tags[at:]),
        brackets=tuple(brackets),
        quotes=tuple(moved),
    )


def read_parameters(path: str) -> Parameters:
    """Reads an EVALB parameter file (`*.prm`); other lines than its are a UserError.

    What it does not mention is empty, not COLLINS.prm's. DEBUG and MAX_ERROR, which
    change no figure, are passed over: errors are counted to the end.
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
        elif name not in _PASSED_OVER:
            raise UserError(
                f"{path}:{number}: {line.strip()!r} is no line of an EVALB parameter "
                "file, such as DELETE_LABEL TOP or EQ_LABEL ADVP PRT"
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
_PASSED_OVER = ("DEBUG", "MAX_ERROR")


def _same(one: str, other: str, pairs: frozenset[tuple[str, str]]) -> bool:
    return one == other or (one, other) in pairs or (other, one) in pairs
