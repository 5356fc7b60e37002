"""From a model directory to a translator, and from several to an ensemble."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from t2t_repro.data.tokenizer import Tokenizer
from t2t_repro.errors import UserError
from t2t_repro.hparams import HParams
from t2t_repro.model_dir import ModelDir
from t2t_repro.models.cached_decoder import CachedDecoder
from t2t_repro.models.ensemble import EnsembleDecoder
from t2t_repro.models.transformer import Transformer
from t2t_repro.training.checkpoints import Checkpoint
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


class Ensemble(NamedTuple):
    """Several models that translate as one.

    Attributes:
        decoder: averages their probabilities.
        tokenizer: their vocabulary.
        hparams: the first model's, which say how to decode.
        checkpoints: the folder of each model's weights.
    """

    decoder: EnsembleDecoder
    tokenizer: Tokenizer
    hparams: HParams
    checkpoints: list[str]


def load_ensemble(
    directories_or_checkpoints: Sequence[Path | str], beam_size: int | None = None
) -> Ensemble:
    """Loads several models over one vocabulary as an ensemble.

    Args:
        directories_or_checkpoints: model directories, whose best checkpoints are
            taken (see `ModelDir.checkpoint`), or folders of checkpoints inside of
            model directories; at least one.
        beam_size: hypotheses per sentence; None takes the first model's own.

    Returns:
        The ensemble.

    Raises:
        UserError: there is no such model or checkpoint, or their vocabularies or
            the sizes of their softmax tables differ.
    """
    names = list(map(str, directories_or_checkpoints))
    members = [_member(Path(name)) for name in names]
    tokenizers = [directory.tokenizer() for directory, _ in members]
    for name, tokenizer in zip(names, tokenizers, strict=True):
        if tokenizer.fingerprint != tokenizers[0].fingerprint:
            raise UserError(
                f"{names[0]} and {name} have different vocabularies; an ensemble "
                "needs models that were trained with one vocabulary"
            )
    models = [directory.model(checkpoint) for directory, checkpoint in members]
    for name, model in zip(names, models, strict=True):
        if model.vocab_size != models[0].vocab_size:
            raise UserError(
                f"{names[0]} and {name} have softmax tables of "
                f"{models[0].vocab_size:,} and {model.vocab_size:,} rows (their "
                "vocab_divisor differs); an ensemble needs tables of one size"
            )
    hparams = members[0][0].hparams()
    beam_size = hparams.beam_size if beam_size is None else beam_size
    decoder = EnsembleDecoder([CachedDecoder(model, beam_size) for model in models])
    checkpoints = [str(checkpoint.path) for _, checkpoint in members]
    return Ensemble(decoder, tokenizers[0], hparams, checkpoints)


def _member(path: Path) -> tuple[ModelDir, Checkpoint]:
    """Finds a model by its directory, or by a checkpoint's folder inside of it."""
    directory = ModelDir(path)
    if directory.exists():
        return directory, directory.checkpoint()
    # DIRECTORY/averaged or DIRECTORY/checkpoints/step-00001000.
    for parent in path.absolute().parents[:2]:
        inside = ModelDir(parent)
        if inside.exists():
            return inside, inside.checkpoint(str(path))
    return directory, directory.checkpoint()
