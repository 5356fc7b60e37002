"""Results of a translation."""

from collections.abc import Callable
from typing import NamedTuple

Progress = Callable[[int, int], object] | None
"""Callback after each batch; its arguments are the numbers of lines and of target
subwords translated since the last call."""


class Hypothesis(NamedTuple):
    """One translation of a sentence.

    Attributes:
        text: Translation; "" for a blank sentence.
        score: Log probability divided by the length penalty; 0 for a blank sentence.
        tokens: Number of subwords, EOS included.
        log_prob: Log probability in nats.
        alignment: Aligned words: pairs of indices into the words of the source and of
            the translation, from 0; None unless requested.
    """

    text: str
    score: float
    tokens: int
    log_prob: float
    alignment: tuple[tuple[int, int], ...] | None = None


BLANK = Hypothesis("", 0.0, 0, 0.0)
"""Translation of a blank sentence."""


class Translation(NamedTuple):
    """Translations of a sentence, with scores.

    Attributes:
        hypotheses: At most `nbest` translations, best first; samples are not sorted.
        cut: Whether the source was cut to the maximum input length.
        missing_terms: Required terms that the best translation lacks, because the
            vocabulary cannot spell them or the length limit leaves no room.
        divided: Whether the source was divided into sentences because it was too long.
        several: Whether the source has several sentences that were translated as one.
    """

    hypotheses: tuple[Hypothesis, ...]
    cut: bool = False
    missing_terms: tuple[str, ...] = ()
    divided: bool = False
    several: bool = False

    @property
    def best(self) -> Hypothesis:
        """Best translation, or the first sample."""
        return self.hypotheses[0]

    @property
    def text(self) -> str:
        """Text of the best translation."""
        return self.best.text

    @property
    def score(self) -> float:
        """Score of the best translation."""
        return self.best.score

    def replace_texts(self, *texts: str) -> "Translation":
        """Returns the first hypotheses, with other texts."""
        pairs = zip(self.hypotheses, texts, strict=False)
        hypotheses = tuple(each._replace(text=text) for each, text in pairs)
        return self._replace(hypotheses=hypotheses)
