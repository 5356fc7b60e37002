"""Python interface of a trained model."""

import os
from collections.abc import Iterable, Sequence
from typing import Any

from t2t_repro import fast
from t2t_repro.hparams import HParams
from t2t_repro.models.transformer import Transformer
from t2t_repro.system.quiet_import import use_tensorflow_backend
from t2t_repro.tokenizers.tokenizer import Tokenizer
from t2t_repro.translation.loading import Loaded, load_models
from t2t_repro.translation.pair_scores import PairScorer


class TrainedModel:
    """A trained model, as returned by `load`.

    Attributes:
        model: Keras model; the first model of an ensemble.
        tokenizer: Tokenizer, which converts text to ids and back.
        hparams: Hyper-parameters of the model and its training.
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
            texts: Sentences, or a single sentence.
            **search: Settings that replace the model's defaults: `beam_size`, `alpha`,
                ... (fields of `t2t_repro.decoding.config.DecodingConfig`).

        Returns:
            One translation per sentence, in order; an empty string for a blank
            sentence.
        """
        lines = [texts] if isinstance(texts, str) else list(texts)
        key = tuple(sorted(search.items()))
        if key not in self._translators:
            self._translators[key] = self._loaded.translator(**search)
        translations = self._translators[key].translate_lines(lines)
        return [translation.text for translation in translations]

    def score(self, pairs: Iterable[tuple[str, str]]) -> list[float]:
        """Scores given translations.

        Args:
            pairs: Source and target sentences.

        Returns:
            The log probability of each target, EOS included, in nats. An ensemble
            scores with its first model.
        """
        if self._scorer is None:
            self._scorer = PairScorer(self.model, self.tokenizer)
        return [score.log_prob for score in self._scorer.score_pairs(pairs)]


def load(
    model_dir: str | os.PathLike[str],
    checkpoint: str = "best",
    precision: str = "float32",
) -> TrainedModel:
    """Loads a trained model.

    The function also installs the optimized implementations of `t2t_repro.fast` in the
    process.

    Args:
        model_dir: Model directory, written by `train` or an import command.
        checkpoint: "best" ("averaged" if it exists, else "latest"), "latest",
            "averaged", or the folder of a checkpoint. A comma-separated list is an
            ensemble.
        precision: "float32", "bfloat16", or "int8" on an x86-64 CPU. The first use of
            "int8" calibrates the model on the validation split.

    Raises:
        UserError: The model or checkpoint is missing or damaged, or Keras was imported
            with another backend than TensorFlow.
    """
    use_tensorflow_backend()
    fast.install()
    return TrainedModel(load_models(model_dir, checkpoint, precision))
