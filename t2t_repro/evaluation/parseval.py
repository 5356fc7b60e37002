"""PARSEVAL: labelled brackets of parses against those of a treebank, as EVALB counts.

A bracket is a constituent's label and the words it spans. Recall is the share of the
treebank's brackets that the parses have, precision the share of the parses' brackets
that the treebank has, F1 their harmonic mean; all over the whole corpus. `Parameters`
say what is not counted and what is equal, by default as COLLINS.prm, with which results
on the Wall Street Journal are published.

A sentence whose parse cannot be read, or has other words, is an error; one whose parse
has no words is skipped. EVALB leaves both out of its figures; `Report.failures_as_zero`
counts their brackets as not found.

Where EVALB stops or goes astray, this does not: a treebank's tree that cannot be read
and files of different length are refused, a parse with words outside of brackets is an
error, errors are counted to the end whatever MAX_ERROR says, and lines, words and
labels may have any length.

Source: paper section 6.3 and table 4; Sekine and Collins, EVALB (README, sections 4 to
7; this is the version of 2006 and later, which reinserts quotes).
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from t2t_repro.evaluation.parseval_trees import (
    Parameters,
    Sentence,
    read_sentence,
    reinsert_quotes,
)
from t2t_repro.system.atomic_file import iterate_lines
from t2t_repro.system.errors import UserError

COLLINS = Parameters()

VALID, ERROR, SKIPPED = "valid", "error", "skipped"


@dataclass(frozen=True)
class SentenceResult:
    """What is counted in one sentence."""

    status: str  # "valid", "error" or "skipped".
    length: int  # Words of the treebank's tree, punctuation included, traces not.
    gold_brackets: int  # Brackets of the treebank's tree.
    test_brackets: int = 0  # Brackets of the parse; 0 unless valid.
    matched: int = 0  # Brackets that are in both; 0 unless valid.
    words: int = 0  # Words of the treebank's tree that are counted.
    # Of those, how many have the same part of speech; 0 unless valid.
    correct_tags: int = 0

    @property
    def complete(self) -> bool:
        """Whether all brackets are right, also where there are none."""
        return self.status == VALID and (
            self.gold_brackets == self.test_brackets == self.matched
        )


@dataclass(frozen=True)
class Totals:
    """Sums over sentences, and the figures made of them, in percent."""

    sentences: int  # All of them.
    errors: int  # Those whose parse cannot be read or has other words.
    skipped: int  # Those whose parse has no words.
    gold_brackets: int  # Brackets of the treebank, of valid sentences.
    test_brackets: int  # Brackets of the parses, of valid sentences.
    matched: int  # Brackets that are in both.
    complete: int  # Valid sentences that are wholly right.
    words: int  # Words of valid sentences that are counted.
    correct_tags: int  # Of those, how many have the same part of speech.

    @property
    def valid(self) -> int:
        """The sentences that the figures are made of."""
        return self.sentences - self.errors - self.skipped

    @property
    def recall(self) -> float:
        """The share of the treebank's brackets that the parses have."""
        return _percent(self.matched, self.gold_brackets)

    @property
    def precision(self) -> float:
        """The share of the parses' brackets that the treebank has."""
        return _percent(self.matched, self.test_brackets)

    @property
    def f1(self) -> float:
        """The harmonic mean of recall and precision; 0 if both are."""
        return _percent(2 * self.matched, self.gold_brackets + self.test_brackets)

    @property
    def complete_match(self) -> float:
        """The share of sentences whose brackets are all right."""
        return _percent(self.complete, self.valid)

    @property
    def tagging(self) -> float:
        """The share of words that have the right part of speech."""
        return _percent(self.correct_tags, self.words)

    def to_dict(self) -> dict[str, float]:
        """Returns the figures, then the counts, by name."""
        figures = ("recall", "precision", "f1", "complete_match", "tagging")
        return {name: getattr(self, name) for name in (*figures, "valid")} | (
            dataclasses.asdict(self)
        )

    def text(self) -> str:
        """Describes the figures in a line."""
        return (
            f"F1 {self.f1:.2f}  recall {self.recall:.2f}  precision "
            f"{self.precision:.2f}  complete match {self.complete_match:.2f}  "
            f"tagging {self.tagging:.2f}"
        )


@dataclass(frozen=True)
class Report:
    """The figures of a corpus."""

    all: Totals  # Over all valid sentences, as EVALB's section "All".
    short: Totals  # Over those of at most `cutoff` words, as EVALB's other section.
    # Over all sentences: those that are not valid count with the treebank's brackets
    # and words, none of them found.
    failures_as_zero: Totals
    cutoff: int  # The length that makes a sentence short, in words.
    results: tuple[SentenceResult, ...]  # Of each sentence, in their order.

    def to_dict(self) -> dict[str, Any]:
        """Returns the figures over all valid sentences, and the others by name."""
        return self.all.to_dict() | {
            "failures_as_zero": self.failures_as_zero.to_dict(),
            f"length_{self.cutoff}": self.short.to_dict(),
        }

    def text(self) -> str:
        """Describes the report for people."""
        every = self.all
        return (
            f"{every.text()}\n"
            f"{self.failures_as_zero.text()}  (failed sentences counted as 0)\n"
            f"{self.short.text()}  (at most {self.cutoff} words, "
            f"{self.short.valid:,} sentences)\n"
            f"{every.sentences:,} sentences: {every.valid:,} valid, {every.errors:,} "
            f"errors, {every.skipped:,} skipped"
        )


def parseval(
    gold: Iterable[str], test: Iterable[str], parameters: Parameters = COLLINS
) -> Report:
    """Scores parses against as many trees of a treebank, one a line.

    An empty line of `gold` is a sentence without words: its parse is skipped if it has
    none either, else an error. A parse that cannot be read is an error, a tree of
    `gold` that cannot be read a UserError that names its line, different numbers a
    ValueError.
    """
    results = []
    for number, (tree, parse) in enumerate(zip(gold, test, strict=True), 1):
        sentence = read_sentence(tree, parameters)
        if sentence.fault is not None:
            raise UserError(f"line {number}: {sentence.fault}")
        results.append(compare(sentence, read_sentence(parse, parameters), parameters))
    short = [result for result in results if result.length <= parameters.cutoff]
    as_zero = [dataclasses.replace(result, status=VALID) for result in results]
    complete = _totals(results).complete  # An empty failure is not complete.
    return Report(
        all=_totals(results),
        short=_totals(short),
        failures_as_zero=dataclasses.replace(_totals(as_zero), complete=complete),
        cutoff=parameters.cutoff,
        results=tuple(results),
    )


def parseval_files(
    gold_file: str, test_file: str, parameters: Parameters = COLLINS
) -> Report:
    """Scores a file of parses, one tree a line.

    A file that cannot be read, a line of `gold_file` that is no tree, or files of
    different length are a UserError.
    """
    gold, test = list(iterate_lines(gold_file)), list(iterate_lines(test_file))
    if len(gold) != len(test):
        raise UserError(
            f"{gold_file} has {len(gold):,} lines but {test_file} has {len(test):,}: "
            "line n of one must be the parse of line n of the other, an empty line "
            "where there is none."
        )
    try:
        return parseval(gold, test, parameters)
    except UserError as error:
        raise UserError(f"{gold_file}, {error}") from None


def compare(
    gold: Sentence, test: Sentence, parameters: Parameters = COLLINS
) -> SentenceResult:
    """Counts what a parse has right of the treebank's tree, which has no fault."""
    if test.words and len(gold.words) != len(test.words):
        # A quote may be an apostrophe in one of the trees, and counted there alone.
        gold, test = reinsert_quotes(gold, test, parameters)
    counted = gold.counted_brackets(parameters)
    failed = SentenceResult(
        ERROR, gold.length, gold_brackets=len(counted), words=len(gold.words)
    )
    if not test.words:
        return dataclasses.replace(failed, status=SKIPPED)
    if test.fault is not None or len(gold.words) != len(test.words):
        return failed
    if not all(map(parameters.same_word, gold.words, test.words)):
        return failed
    found = test.counted_brackets(parameters)
    return dataclasses.replace(
        failed,
        status=VALID,
        test_brackets=len(found),
        matched=_matches(counted, found, parameters),
        correct_tags=sum(map(parameters.same_label, gold.tags, test.tags)),
    )


def _matches(
    gold: Sequence[tuple[int, int, str]],
    test: Sequence[tuple[int, int, str]],
    parameters: Parameters,
) -> int:
    """Counts brackets that are in both, each once.

    Each of the treebank's takes the first of the parse that is still free: labels
    that are equal by pairs need not be so by threes.
    """
    free: dict[tuple[int, int], list[str]] = defaultdict(list)
    for start, end, label in test:
        free[start, end].append(label)
    matched = 0
    for start, end, label in gold:
        labels = free[start, end]
        for place, other in enumerate(labels):
            if not parameters.labelled or parameters.same_label(label, other):
                del labels[place]
                matched += 1
                break
    return matched


def _totals(results: Sequence[SentenceResult]) -> Totals:
    """Sums up; of sentences that are not valid only the number counts."""
    statuses = Counter(result.status for result in results)
    valid = [result for result in results if result.status == VALID]
    counts = ("gold_brackets", "test_brackets", "matched", "complete", "words")
    sums = {
        name: sum(getattr(result, name) for result in valid)
        for name in (*counts, "correct_tags")
    }
    return Totals(len(results), statuses[ERROR], statuses[SKIPPED], **sums)


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0
