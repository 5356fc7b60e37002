"""Computes PARSEVAL scores of parses, equal to those of EVALB.

A bracket is a constituent's label with its span of words. Recall is the percentage of
the treebank's brackets that occur in the parses, precision the percentage of the
parses' brackets that occur in the treebank, and F1 their harmonic mean, all over the
whole corpus. `Parameters` define ignored brackets and equivalent labels; the default is
COLLINS.prm, the usual choice for published results on the Wall Street Journal.

A sentence is an error if its parse cannot be read or has different words, and is
skipped if its parse is empty. EVALB excludes both from its scores;
`Report.failures_as_zero` includes them, without any correct brackets.

Unlike EVALB, this module rejects malformed trees of the treebank and files of different
length, treats words outside of brackets as an error of the parse, ignores MAX_ERROR,
and does not limit the length of lines, words and labels.

Source: paper section 6.3 and table 4; Sekine and Collins, EVALB (README, sections 4 to
7; the version since 2006, which reinserts quotes).
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
from t2t_repro.system.atomic_file import iterate_pairs
from t2t_repro.system.errors import UserError

COLLINS = Parameters()

VALID, ERROR, SKIPPED = "valid", "error", "skipped"


@dataclass(frozen=True)
class SentenceResult:
    """Counts of one sentence."""

    status: str  # "valid", "error" or "skipped".
    length: int  # Words of the treebank's tree, including punctuation, without traces.
    gold_brackets: int  # Brackets of the treebank's tree.
    test_brackets: int = 0  # Brackets of the parse; 0 unless valid.
    matched: int = 0  # Brackets in both trees; 0 unless valid.
    words: int = 0  # Words of the treebank's tree that are scored.
    # Scored words with the correct part of speech; 0 unless valid.
    correct_tags: int = 0
    complete: bool = False  # Whether it is valid and both trees have equal brackets.


@dataclass(frozen=True)
class Totals:
    """Counts summed over sentences, and the scores computed from them."""

    sentences: int  # Number of all sentences.
    errors: int  # Sentences whose parse cannot be read or has different words.
    skipped: int  # Sentences whose parse is empty.
    gold_brackets: int  # Brackets of the treebank in valid sentences.
    test_brackets: int  # Brackets of the parses in valid sentences.
    matched: int  # Brackets in both.
    complete: int  # Valid sentences with only correct brackets.
    words: int  # Scored words of valid sentences.
    correct_tags: int  # Scored words with the correct part of speech.

    @property
    def valid(self) -> int:
        """Number of scored sentences."""
        return self.sentences - self.errors - self.skipped

    @property
    def recall(self) -> float:
        """Percentage of the treebank's brackets that occur in the parses."""
        return _percent(self.matched, self.gold_brackets)

    @property
    def precision(self) -> float:
        """Percentage of the parses' brackets that occur in the treebank."""
        return _percent(self.matched, self.test_brackets)

    @property
    def f1(self) -> float:
        """Harmonic mean of recall and precision, in percent."""
        return _percent(2 * self.matched, self.gold_brackets + self.test_brackets)

    @property
    def complete_match(self) -> float:
        """Percentage of sentences with only correct brackets."""
        return _percent(self.complete, self.valid)

    @property
    def tagging(self) -> float:
        """Percentage of words with the correct part of speech."""
        return _percent(self.correct_tags, self.words)

    def to_dict(self) -> dict[str, float]:
        """Returns scores and counts by name."""
        figures = ("recall", "precision", "f1", "complete_match", "tagging")
        return {name: getattr(self, name) for name in (*figures, "valid")} | (
            dataclasses.asdict(self)
        )

    def text(self) -> str:
        """Returns the scores in one line."""
        return (
            f"F1 {self.f1:.2f}  recall {self.recall:.2f}  precision "
            f"{self.precision:.2f}  complete match {self.complete_match:.2f}  "
            f"tagging {self.tagging:.2f}"
        )


@dataclass(frozen=True)
class Report:
    """Scores of a corpus."""

    all: Totals  # Valid sentences: EVALB's section "All".
    short: Totals  # Valid sentences of at most `cutoff` words: EVALB's other section.
    # All sentences; those with errors and skipped ones are scored as 0.
    failures_as_zero: Totals
    cutoff: int  # Maximum length of a short sentence, in words.
    results: tuple[SentenceResult, ...]  # Counts of each sentence.

    def to_dict(self) -> dict[str, Any]:
        """Returns the totals of `all`, and the other totals as nested dictionaries."""
        return self.all.to_dict() | {
            "failures_as_zero": self.failures_as_zero.to_dict(),
            f"length_{self.cutoff}": self.short.to_dict(),
        }

    def text(self) -> str:
        """Returns all scores as text."""
        total = self.all
        return (
            f"{total.text()}\n"
            f"{self.failures_as_zero.text()}  (failed sentences counted as 0)\n"
            f"{self.short.text()}  (at most {self.cutoff} words, "
            f"{self.short.valid:,} sentences)\n"
            f"{total.sentences:,} sentences: {total.valid:,} valid, {total.errors:,} "
            f"errors, {total.skipped:,} skipped"
        )


def parseval(
    gold: Iterable[str], test: Iterable[str], parameters: Parameters = COLLINS
) -> Report:
    """Scores parses against the trees of a treebank.

    Args:
        gold: Trees of the treebank, one per line. An empty line is a sentence without
            words; its parse is skipped if empty, and an error otherwise.
        test: Parses of the same sentences, one per line.
        parameters: Parameters of EVALB.

    Raises:
        UserError: A tree of `gold` is malformed.
        ValueError: The numbers of lines differ.
    """
    results = []
    for number, (tree, parse) in enumerate(zip(gold, test, strict=True), 1):
        sentence = read_sentence(tree, parameters)
        if sentence.fault is not None:
            raise UserError(f"line {number}: {sentence.fault}")
        results.append(compare(sentence, read_sentence(parse, parameters), parameters))
    short = [result for result in results if result.length <= parameters.cutoff]
    as_zero = [dataclasses.replace(result, status=VALID) for result in results]
    return Report(
        all=_totals(results),
        short=_totals(short),
        failures_as_zero=_totals(as_zero),
        cutoff=parameters.cutoff,
        results=tuple(results),
    )


def parseval_files(
    gold_file: str, test_file: str, parameters: Parameters = COLLINS
) -> Report:
    """Scores a file of parses with one tree per line.

    Args:
        gold_file: File of the treebank's trees.
        test_file: File of the parses.
        parameters: Parameters of EVALB.

    Raises:
        UserError: A file cannot be read, a line of `gold_file` is not a tree, or the
            files have different numbers of lines.
    """
    gold, test = zip(*iterate_pairs(gold_file, test_file), strict=True)
    try:
        return parseval(gold, test, parameters)
    except UserError as error:
        raise UserError(f"{gold_file}, {error}") from None


def compare(
    gold: Sentence, test: Sentence, parameters: Parameters = COLLINS
) -> SentenceResult:
    """Counts the matching brackets and tags of a treebank's tree and a parse."""
    if test.words and len(gold.words) != len(test.words):
        # A quote may be tagged as an apostrophe in only one of the trees.
        gold, test = reinsert_quotes(gold, test, parameters)
    gold_brackets = gold.counted_brackets(parameters)
    failed = SentenceResult(
        ERROR, gold.length, gold_brackets=len(gold_brackets), words=len(gold.words)
    )
    if not test.words:
        return dataclasses.replace(failed, status=SKIPPED)
    if test.fault is not None or len(gold.words) != len(test.words):
        return failed
    if not all(map(parameters.same_word, gold.words, test.words)):
        return failed
    test_brackets = test.counted_brackets(parameters)
    matched = _matches(gold_brackets, test_brackets, parameters)
    return dataclasses.replace(
        failed,
        status=VALID,
        test_brackets=len(test_brackets),
        matched=matched,
        correct_tags=sum(map(parameters.same_label, gold.tags, test.tags)),
        complete=len(gold_brackets) == len(test_brackets) == matched,
    )


def _matches(
    gold: Sequence[tuple[int, int, str]],
    test: Sequence[tuple[int, int, str]],
    parameters: Parameters,
) -> int:
    """Returns the number of matching brackets.

    Each bracket of the treebank matches the first unmatched one of the parse. The order
    matters, because the equality of labels is not transitive.
    """
    free: dict[tuple[int, int], list[str]] = defaultdict(list)
    for start, end, label in test:
        free[start, end].append(label)
    matched = 0
    for start, end, label in gold:
        labels = free[start, end]
        for index, other in enumerate(labels):
            if not parameters.labelled or parameters.same_label(label, other):
                del labels[index]
                matched += 1
                break
    return matched


def _totals(results: Sequence[SentenceResult]) -> Totals:
    """Sums the counts of valid sentences, and counts the other sentences."""
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
