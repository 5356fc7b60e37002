"""From a model directory to a translator."""

from typing import Any

from t2t_repro.data.tokenizer import Tokenizer
from t2t_repro.hparams import HParams
from t2t_repro.model_dir import ModelDir
from t2t_repro.models.transformer import Transformer
from t2t_repro.translator import Translator


def translator_of(
    model: Transformer, tokenizer: Tokenizer, hparams: HParams, **changes: Any
) -> Translator:
    """Builds a translator that decodes as the hyper-parameters say."""
    settings = {
        "beam_size": hparams.beam_size,
        "alpha": hparams.alpha,
        "extra_length": hparams.decode_extra_length,
    }
    return Translator(model, tokenizer, **(settings | changes))


def load_translator(
    directory: ModelDir,
    checkpoint: str = "best",
    beam_size: int | None = None,
    alpha: float | None = None,
) -> tuple[Translator, str]:
    """Loads a model and makes it translate.

    Args:
        directory: the model's.
        checkpoint: "best", "latest", "averaged", or a checkpoint's folder.
        beam_size: hypotheses per sentence; None takes the model's own.
        alpha: exponent of the length penalty; None takes the model's own.

    Returns:
        The translator, and the checkpoint's folder as text.

    Raises:
        UserError: there is no such checkpoint, or it is damaged.
    """
    chosen = directory.checkpoint(checkpoint)
    hparams = directory.hparams()
    changes = {"beam_size": beam_size, "alpha": alpha}
    hparams = hparams.replace(**{k: v for k, v in changes.items() if v is not None})
    translator = translator_of(directory.model(chosen), directory.tokenizer(), hparams)
    return translator, str(chosen.path)
