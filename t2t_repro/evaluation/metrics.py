"""Computes sacreBLEU's metrics and tests whether two systems differ significantly."""

import sys
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, cast

from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest, Result
from tqdm import tqdm

from t2t_repro.evaluation.bleu import check_line_counts, paper_bleu, select_tokenizer
from t2t_repro.evaluation.references import omit_empty_references
from t2t_repro.system.errors import UserError

SAMPLES = 1000
"""Number of bootstrap samples of the test set, as in sacreBLEU."""

_PAPER = "the paper's BLEU"
ORIGINAL_QUOTES = f"{_PAPER}, original quotes"
"""Name of newstest2014's score in `BleuScore.original_quotes`."""

BLEU_KEYS = {
    "BLEU": ("bleu", "signature"),
    _PAPER: ("paper_bleu", "paper_signature"),
    ORIGINAL_QUOTES: ("paper_bleu_original_quotes", "paper_signature_original_quotes"),
}
"""JSON keys of the score and of the signature of each kind of BLEU, by name."""

_SIGNIFICANCE = 0.05


class Figure(NamedTuple):
    """Score of a test set by one metric."""

    name: str  # Name of the metric.
    score: float  # From 0 to 100; lower is better for TER.
    signature: str  # Settings of the metric.

    def text(self) -> str:
        """Returns the name, score and signature in one line."""
        return f"{self.name} {self.score:.2f}  {self.signature}"


def figures(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    target_lang: str | None = None,
    tokenize: str = "13a",
    lowercase: bool = False,
) -> list[Figure]:
    """Computes BLEU, chrF, chrF++ and TER as sacreBLEU's command does.

    Args:
        hypotheses: Translations as plain text, one per line.
        references: One or several references of the same lines. An empty reference of
            a line with another one is omitted.
        target_lang: Language code. If set, and the language has spaces between words,
            the second result is the paper's BLEU and, for newstest2014, the third is
            `ORIGINAL_QUOTES`.
        tokenize: Tokenizer of BLEU; see `bleu.select_tokenizer`.
        lowercase: Whether BLEU, chrF and chrF++ ignore case. TER always does.

    Raises:
        UserError: The numbers of lines differ or are 0.
    """
    for lines in references:
        check_line_counts(hypotheses, lines)
    results, known = [], omit_empty_references(references)
    for name, metric in _metrics(tokenize, lowercase).items():
        score = metric.corpus_score(hypotheses, known).score
        results.append(Figure(name, score, str(metric.get_signature())))
    if target_lang is not None and select_tokenizer(target_lang).name == "13a":
        paper = paper_bleu(hypotheses, references[0], target_lang, references[1:])
        results.insert(1, Figure(_PAPER, paper.score, paper.signature))
        if official := paper.original_quotes:
            figure = Figure(ORIGINAL_QUOTES, official.score, official.signature)
            results.insert(2, figure)
    return results


class Difference(NamedTuple):
    """Comparison of two systems by a paired bootstrap (Koehn 2004) of one metric.

    Attributes:
        name: Name of the metric.
        first: Score of the first system, and the mean of its bootstrap samples with
            95 % confidence interval.
        second: The same figures of the second system, and the p-value of the null
            hypothesis that the systems are equal.
        signature: Settings of the metric.
    """

    name: str
    first: Result
    second: Result
    signature: str

    @property
    def is_significant(self) -> bool:
        """Whether the p-value is below 0.05."""
        assert self.second.p_value is not None
        return self.second.p_value < _SIGNIFICANCE

    def text(self) -> str:
        """Returns both scores and the result of the test in one line."""
        first, second = (
            f"{each.score:.2f} ({each.mean:.2f} ± {each.ci:.2f})"
            for each in (self.first, self.second)
        )
        return (
            f"{self.name} {first} and {second} "
            f"{'differ' if self.is_significant else 'do not differ significantly'}: "
            f"p = {self.second.p_value:.4f}  {self.signature}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields as JSON-compatible values."""
        values: dict[str, Any] = {"name": self.name, "signature": self.signature}
        for name in ("first", "second"):
            figures = vars(getattr(self, name)).items()
            # NumPy numbers cannot be serialized to JSON.
            values[name] = {k: float(v) for k, v in figures if v is not None}
        return values


def paired_bootstrap(
    hypotheses: Sequence[str],
    others: Sequence[str],
    references: Sequence[Sequence[str]],
    samples: int = SAMPLES,
    tokenize: str = "13a",
    lowercase: bool = False,
    names: Collection[str] | None = None,
) -> list[Difference]:
    """Compares the translations of two systems by each metric.

    Uses sacreBLEU's test and seed (12345, or $SACREBLEU_SEED).

    Args:
        hypotheses: Translations of the first system, one per line.
        others: Translations of the second system.
        references: One or several references of the same lines.
        samples: Number of bootstrap samples.
        tokenize: As in `figures`.
        lowercase: As in `figures`.
        names: Names of the metrics; None for all of them.

    Raises:
        UserError: The numbers of lines differ or are less than 2.
    """
    for lines in (others, *references):
        check_line_counts(hypotheses, lines)
    if len(hypotheses) < 2:
        raise UserError(
            "a paired bootstrap needs at least two lines; samples of one line are equal"
        )
    differences, known = [], omit_empty_references(references)
    hide = not sys.stderr.isatty()
    metrics = [
        (name, metric)
        for name, metric in _metrics(tokenize, lowercase).items()
        if names is None or name in names
    ]
    for name, metric in tqdm(metrics, unit=" metrics", disable=hide):
        test = PairedTest(
            [("first", hypotheses), ("second", others)],
            {name: metric},
            known,
            test_type="bs",
            n_samples=samples,
        )
        signatures, results = test()
        ((key, signature),) = signatures.items()
        first, second = cast(list[Result], results[key])
        if first.score == second.score:
            # For identical translations, sacreBLEU returns the smallest p-value.
            second.p_value = 1.0
        differences.append(Difference(name, first, second, str(signature)))
    return differences


def _metrics(tokenize: str, lowercase: bool) -> dict[str, Any]:
    """Returns sacreBLEU's metrics by name."""
    return {
        "BLEU": BLEU(tokenize=tokenize, lowercase=lowercase, force=True),
        "chrF": CHRF(lowercase=lowercase),
        "chrF++": CHRF(word_order=2, lowercase=lowercase),
        "TER": TER(),
    }
