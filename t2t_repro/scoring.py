"""The BLEU of a translator on a split, by both definitions."""

import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tqdm import tqdm

from t2t_repro.evaluation.bleu import paper_bleu, sacre_bleu
from t2t_repro.translator import Translation, Translator


@dataclass(frozen=True)
class Score:
    """What a translator reaches on a split.

    Attributes:
        bleu: sacreBLEU, cased, 13a.
        signature: sacreBLEU's own description of how it was computed.
        paper_bleu: the paper's figure: tokenised, compounds split.
        paper_signature: how that was computed.
        sentences: sentences scored.
        tokens: subwords of the translations, EOS included.
        seconds: time spent translating.
    """

    bleu: float
    signature: str
    paper_bleu: float
    paper_signature: str
    sentences: int
    tokens: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields by name."""
        return asdict(self)

    def text(self) -> str:
        """Describes the score for people, each figure named for what it is."""
        return (
            f"BLEU {self.bleu:.2f}  {self.signature}\n"
            f"the paper's BLEU {self.paper_bleu:.2f}  {self.paper_signature}\n"
            f"{self.sentences:,} sentences in {self.seconds:.1f} s, "
            f"{self.tokens / max(self.seconds, 1e-9):,.0f} tokens/s"
        )


def score(
    translator: Translator,
    pairs: Sequence[tuple[str, str]],
    target_lang: str,
    batch_size: int = 32,
    show_progress: bool = True,
) -> tuple[Score, list[Translation]]:
    """Translates the sources and scores the result against the targets.

    Args:
        translator: the translator.
        pairs: source and reference, at least one.
        target_lang: language of the references.
        batch_size: sentences translated at once.
        show_progress: whether a progress bar is drawn on a terminal.

    Returns:
        The score and the translations, in the order of the pairs.
    """
    sources = [source for source, _ in pairs]
    references = [target for _, target in pairs]
    began = time.monotonic()
    # Drawn on terminals only; a log file gets the result alone.
    hide = not show_progress or not sys.stderr.isatty()
    with tqdm(total=len(pairs), unit=" sentences", disable=hide) as bar:
        translations = list(
            translator.translate_lines(
                sources, batch_size, window=len(sources), progress=bar.update
            )
        )
    seconds = time.monotonic() - began
    hypotheses = [translation.text for translation in translations]
    sacre = sacre_bleu(hypotheses, references)
    paper = paper_bleu(hypotheses, references, target_lang)
    result = Score(
        bleu=sacre.score,
        signature=sacre.signature,
        paper_bleu=paper.score,
        paper_signature=paper.signature,
        sentences=len(pairs),
        tokens=sum(translation.tokens for translation in translations),
        seconds=seconds,
    )
    return result, translations
