"""What sacreBLEU computes of finished translations, and whether two of them differ."""

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest, Result
from tqdm import tqdm

from t2t_repro.evaluation.bleu import check_line_counts, paper_bleu

SAMPLES = 1000
"""How often the bootstrap draws the test set anew, as in sacreBLEU."""

ORIGINAL_QUOTES = "the paper's BLEU, original quotes"
"""Name of the figure that newstest2014 has twice (see `BleuScore.original_quotes`)."""

_CERTAIN = 0.05


class Figure(NamedTuple):
    """A figure of a whole test set."""

    name: str
    score: float  # In points; TER is better the lower it is.
    signature: str  # How it was computed.

    def text(self) -> str:
        """Describes it in one line."""
        return f"{self.name} {self.score:.2f}  {self.signature}"


def figures(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    target_lang: str | None = None,
) -> list[Figure]:
    """Computes BLEU, chrF, chrF++ and TER as sacreBLEU's own command does.

    Args:
        hypotheses: plain text, a line a sentence.
        references: one or several, each as long.
        target_lang: if given, the paper's BLEU of that language comes second, and
            for newstest2014 `ORIGINAL_QUOTES` third.

    Raises:
        UserError: there are no lines, or not as many on each side.
    """
    for lines in references:
        check_line_counts(hypotheses, lines)
    found = []
    for name, metric in _metrics().items():
        score = metric.corpus_score(hypotheses, references).score
        found.append(Figure(name, score, str(metric.get_signature())))
    if target_lang is not None:
        paper = paper_bleu(hypotheses, references[0], target_lang, references[1:])
        found.insert(1, Figure("the paper's BLEU", paper.score, paper.signature))
        if paper.original_quotes:
            official = paper.original_quotes
            found.insert(2, Figure(ORIGINAL_QUOTES, official.score, official.signature))
    return found


class Difference(NamedTuple):
    """How two systems compare by one metric, by a paired bootstrap (Koehn 2004).

    Attributes:
        name: the metric.
        first: sacreBLEU's score, and the mean of the samples with its 95 % interval.
        second: the same of the other system, and the p-value of the hypothesis that the
            two do not differ.
        signature: how it was computed.
    """

    name: str
    first: Result
    second: Result
    signature: str

    def text(self) -> str:
        """Describes it in one line."""
        # Of two equal scores sacreBLEU's p-value is the least there is.
        equal = self.first.score == self.second.score
        certain = not equal and float(self.second.p_value or 0) < _CERTAIN
        first, second = (
            f"{each.score:.2f} ({each.mean:.2f} ± {each.ci:.2f})"
            for each in (self.first, self.second)
        )
        return (
            f"{self.name} {first} and {second} "
            f"{'differ' if certain else 'do not differ for certain'}: "
            f"p = {self.second.p_value:.4f}  {self.signature}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Returns all figures by name, for programs."""
        values: dict[str, Any] = {"name": self.name, "signature": self.signature}
        for name in ("first", "second"):
            figures = vars(getattr(self, name)).items()
            # NumPy's numbers are not JSON's.
            values[name] = {k: float(v) for k, v in figures if v is not None}
        return values


def paired_bootstrap(
    hypotheses: Sequence[str],
    others: Sequence[str],
    references: Sequence[Sequence[str]],
    samples: int = SAMPLES,
) -> list[Difference]:
    """Compares two systems' translations by each metric.

    The test and its seed (12345, or $SACREBLEU_SEED) are sacreBLEU's, the second system
    measured against the first. Arguments and errors as in `figures`.
    """
    for lines in (others, *references):
        check_line_counts(hypotheses, lines)
    found = []
    hide = not sys.stderr.isatty()
    for name, metric in tqdm(_metrics().items(), unit=" metrics", disable=hide):
        test = PairedTest(
            [("first", hypotheses), ("second", others)],
            {name: metric},
            references,
            test_type="bs",
            n_samples=samples,
        )
        signatures, results = test()
        ((key, signature),) = signatures.items()
        first, second = cast(list[Result], results[key])
        found.append(Difference(name, first, second, str(signature)))
    return found


def _metrics() -> dict[str, Any]:
    """Returns sacreBLEU's metrics with its own settings, by name."""
    return {
        "BLEU": BLEU(force=True),
        "chrF": CHRF(),
        "chrF++": CHRF(word_order=2),
        "TER": TER(),
    }
