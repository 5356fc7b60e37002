"""Results of the Python interface."""

from dataclasses import dataclass

from t2t_repro.texts.translation import ScoredText, Translation


@dataclass(frozen=True)
class Hypothesis:
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


@dataclass(frozen=True)
class TranslationResult:
    """Translations of a sentence, with scores.

    Attributes:
        hypotheses: At most `nbest` translations, best first; samples are not sorted.
        cut: Whether the source was cut to the maximum input length.
        missing_terms: Required terms that the best translation lacks, because the
            vocabulary cannot spell them or the length limit leaves no room.
    """

    hypotheses: tuple[Hypothesis, ...]
    cut: bool
    missing_terms: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Best translation."""
        return self.hypotheses[0].text

    @property
    def score(self) -> float:
        """Score of the best translation."""
        return self.hypotheses[0].score


def read_result(translation: Translation) -> TranslationResult:
    """Returns the hypotheses of a translation, without alignments."""
    best = ScoredText(*translation[:4])
    return TranslationResult(
        tuple(Hypothesis(*each[:4]) for each in (best, *translation.others)),
        translation.cut,
        translation.missing_terms,
    )
