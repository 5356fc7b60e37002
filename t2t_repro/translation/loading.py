"""From model directories and checkpoints to a translator."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.fast.compiled_search import CompiledSearch
from t2t_repro.hparams import HParams
from t2t_repro.models.precision import precision as models_in
from t2t_repro.models.transformer import Transformer
from t2t_repro.runs.checkpoints import Checkpoint
from t2t_repro.runs.model_dir import CHECKPOINT_NAMES, ModelDir
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.tokenizer import Tokenizer
from t2t_repro.translation.calibration import quantize_model
from t2t_repro.translation.translator import Translator


def search_of(hparams: HParams, tokenizer: Tokenizer, **changes: Any) -> DecodingConfig:
    """Returns a model's own search, but for the fields that are given and not None."""
    unknown = tokenizer.target.unknown_id
    settings: dict[str, Any] = {
        "beam_size": hparams.beam_size,
        "alpha": hparams.alpha,
        "extra_length": hparams.decode_extra_length,
        "length_factor": hparams.decode_length_factor,
        "algorithm": hparams.search,
        "word_penalty": hparams.word_penalty,
        "never": () if hparams.allow_unknown or unknown is None else (unknown,),
    }
    asked = {name: value for name, value in changes.items() if value is not None}
    return DecodingConfig(**(settings | asked))


class Loaded(NamedTuple):
    """Models that translate as one, or a single one.

    Attributes:
        models: over one vocabulary, with softmax tables of one size.
        tokenizer: the vocabulary.
        hparams: the directory's, which say how to translate.
        homes: the model directory of each model's weights.
        checkpoints: the folder of each model's weights.
    """

    models: list[Transformer]
    tokenizer: Tokenizer
    hparams: HParams
    model_dirs: list[ModelDir]
    checkpoints: list[str]

    def search(self, **changes: Any) -> DecodingConfig:
        """Returns their own search; `changes` are those of `search_of`."""
        return search_of(self.hparams, self.tokenizer, **changes)

    def translator(self, compiled: bool = False, **changes: Any) -> Translator:
        """Makes them translate; `changes` are those of `search_of`.

        With `compiled`, XLA compiles the search for a batch of one sentence.
        """
        search = self.search(**changes)
        for_one = CompiledSearch(self.models, search) if compiled else None
        return Translator(self.models, self.tokenizer, search, for_one=for_one)


def load_models(
    model_dir: ModelDir | str | os.PathLike[str],
    checkpoints: str | Sequence[str] = "best",
    precision: str = "float32",
    calibration_file: str | None = None,
) -> Loaded:
    """Loads models over one vocabulary.

    Args:
        model_dir: says how to translate.
        checkpoints: a list, or a text with commas between: each is one of
            `CHECKPOINT_NAMES` of the directory, another model's directory, whose best
            is taken, or the folder of a checkpoint in any model's directory.
        precision: one of `PRECISIONS`, or "int8" (see `calibration`).
        calibration_file: text that the bounds of int8 are found on.

    Raises:
        UserError: there is no such model or checkpoint, it is damaged, or the
            vocabularies or the sizes of the softmax tables differ; or int8 is not
            for this machine.
    """
    directory = model_dir
    if not isinstance(directory, ModelDir):
        directory = ModelDir(Path(directory))
    if isinstance(checkpoints, str):
        # A folder may have commas in its name.
        alone = Path(checkpoints).exists()
        checkpoints = [checkpoints] if alone else checkpoints.split(",")
    members = [_member(directory, name) for name in checkpoints]
    tokenizer = directory.tokenizer()
    for name, (home, _) in zip(checkpoints, members, strict=True):
        if home.tokenizer().fingerprint != tokenizer.fingerprint:
            raise UserError(
                f"{directory.path} and {name} have different vocabularies; give "
                "models over one vocabulary"
            )
    with models_in("float32" if precision == "int8" else precision):
        models = [home.model(checkpoint) for home, checkpoint in members]
    for name, model in zip(checkpoints, models, strict=True):
        if model.vocab_size != models[0].vocab_size:
            raise UserError(
                f"{checkpoints[0]} and {name} have softmax tables of "
                f"{models[0].vocab_size:,} and {model.vocab_size:,} rows (their "
                "vocab_divisor differs); models that translate as one need tables of "
                "one size"
            )
    hparams = directory.hparams()
    if precision == "int8":
        search = search_of(hparams, tokenizer)
        for model, (home, _) in zip(models, members, strict=True):
            quantize_model(model, home, search, calibration_file)
    model_dirs = [home for home, _ in members]
    folders = [str(checkpoint.path) for _, checkpoint in members]
    return Loaded(models, tokenizer, hparams, model_dirs, folders)


def _member(directory: ModelDir, name: str) -> tuple[ModelDir, Checkpoint]:
    """Finds a checkpoint, and the model directory that it belongs to."""
    if name in CHECKPOINT_NAMES:
        # Even if the current folder has one of this name.
        return directory, directory.checkpoint(name)
    path = Path(name)
    if ModelDir(path).exists():
        return ModelDir(path), ModelDir(path).checkpoint()
    # DIRECTORY/averaged or DIRECTORY/checkpoints/step-00001000.
    for parent in path.absolute().parents[:2]:
        if path.exists() and ModelDir(parent).exists():
            return ModelDir(parent), ModelDir(parent).checkpoint(name)
    return directory, directory.checkpoint(name)
