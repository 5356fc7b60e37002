"""A trained model, as a Python program meets it."""

import os
from collections.abc import Iterable, Sequence
from typing import Any

from t2t_repro import fast
from t2t_repro.hparams import HParams
from t2t_repro.models.transformer import Transformer
from t2t_repro.tokenizers.tokenizer import Tokenizer
from t2t_repro.translation.loading import Loaded, load_models
from t2t_repro.translation.pair_scores import PairScorer


class TrainedModel:
    """What `load` returns.

    Attributes:
        model: the Keras model; of several that translate as one, the first.
        tokenizer: text to ids and back.
        hparams: what it was made and trained with.
    """

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self.model: Transformer = loaded.models[0]
        self.tokenizer: Tokenizer = loaded.tokenizer
        self.hparams: HParams = loaded.hparams
        self._translators: dict[tuple[tuple[str, Any], ...], Any] = {}
        self._scorer: PairScorer | None = None

    def translate(self, texts: Sequence[str], **search: Any) -> list[str]:
        """Translates sentences, as `python -m t2t_repro.translate` does.

        Args:
            texts: sentences, or one of them alone.
            **search: what differs from the model's own: `beam_size`, `alpha`, ...
                (fields of `t2t_repro.decoding.config.DecodingConfig`).

        Returns:
            A translation for each, in their order; a blank one stays empty.
        """
        lines = [texts] if isinstance(texts, str) else list(texts)
        chosen = tuple(sorted(search.items()))
        if chosen not in self._translators:
            self._translators[chosen] = self._loaded.translator(**search)
        found = self._translators[chosen].translate_lines(lines)
        return [translation.text for translation in found]

    def score(self, pairs: Iterable[tuple[str, str]]) -> list[float]:
        """Scores given translations.

        Args:
            pairs: source and target sentences.

        Returns:
            The log probability of each target, in nats, its end included; of several
            models that translate as one, the first's.
        """
        if self._scorer is None:
            self._scorer = PairScorer(self.model, self.tokenizer)
        return [score.log_prob for score in self._scorer.score_pairs(pairs)]


def load(
    model_dir: str | os.PathLike[str],
    checkpoint: str = "best",
    precision: str = "float32",
) -> TrainedModel:
    """Brings a trained model back.

    From then on the process uses the optimized implementations of `t2t_repro.fast`.

    Args:
        model_dir: a folder that `train` or `import_t2t` made.
        checkpoint: "best" (averaged, if it was), "latest", "averaged", or a folder;
            several, with commas between them, translate as one.
        precision: "float32", "bfloat16", or "int8" on a CPU with VNNI (the bounds that
            it needs are found on the validation split, once).

    Raises:
        UserError: there is no such model or checkpoint, or it is damaged.
    """
    fast.install()
    return TrainedModel(load_models(model_dir, checkpoint, precision))
