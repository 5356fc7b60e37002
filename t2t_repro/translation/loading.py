"""Loading of models from model directories and checkpoints."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.hparams import HParams
from t2t_repro.models.precision import PRECISIONS
from t2t_repro.models.precision import precision as models_in
from t2t_repro.models.transformer import Transformer
from t2t_repro.runs.checkpoints import Checkpoint
from t2t_repro.runs.model_dir import CHECKPOINT_NAMES, ModelDir
from t2t_repro.system.errors import UserError
from t2t_repro.texts.sentences import SentenceSplitter
from t2t_repro.tokenizers.tokenizer import Tokenizer
from t2t_repro.translation.calibration import quantize_model
from t2t_repro.translation.options import TranslationOptions
from t2t_repro.translation.translator import MAX_INPUT_LENGTH


@dataclass(frozen=True)
class Loaded:
    """A model, or the models of an ensemble.

    Attributes:
        models: Models with a common vocabulary and softmax tables of the same size.
        tokenizer: Tokenizer of all models.
        hparams: Hyper-parameters with the defaults of the search.
        model_dirs: Model directory of each model.
        checkpoints: Checkpoint folder of each model.
        weight_bits: Number of bits of int8 weights; None for other precisions.
    """

    models: list[Transformer]
    tokenizer: Tokenizer
    hparams: HParams
    model_dirs: list[ModelDir]
    checkpoints: list[str]
    weight_bits: int | None = None

    def search(self, **options: Any) -> DecodingConfig:
        """Returns the settings of the search; `options` as in `TranslationOptions`."""
        return TranslationOptions(**options).search(self.hparams, self.tokenizer)

    @cached_property
    def splitter(self) -> SentenceSplitter:
        """Rule by which texts are divided into sentences."""
        language = self.model_dirs[0].provenance().source_lang
        return SentenceSplitter(self.tokenizer, MAX_INPUT_LENGTH, language)


def load_models(
    model_dir: ModelDir | str | os.PathLike[str],
    checkpoints: str | Sequence[str] = "best",
    precision: str = "float32",
    calibration_file: str | None = None,
    weight_bits: int | None = None,
) -> Loaded:
    """Loads a model, or the models of an ensemble.

    Args:
        model_dir: Model directory with the vocabulary and the settings of the search.
        checkpoints: List, or comma-separated string, of checkpoints. Each is one of
            `CHECKPOINT_NAMES` (in `model_dir`), another model directory (its "best"
            checkpoint), or the folder of a checkpoint.
        precision: One of `PRECISIONS`, or "int8" (see `calibration`).
        calibration_file: Text for the calibration of int8; None for the validation
            split.
        weight_bits: Number of bits of int8 weights, 8 or 7; None for the largest number
            that this machine sums exactly.

    Raises:
        UserError: A model or checkpoint is missing or damaged, the vocabularies or the
            sizes of the softmax tables differ, or the precision is not available.
    """
    if precision not in (*PRECISIONS, "int8"):
        raise UserError(
            f"precision is {precision!r}, must be one of {', '.join(PRECISIONS)}, int8"
        )
    directory = model_dir
    if not isinstance(directory, ModelDir):
        directory = ModelDir(Path(directory))
    if isinstance(checkpoints, str):
        # The name of a folder may contain commas.
        is_path = Path(checkpoints).exists()
        checkpoints = [checkpoints] if is_path else checkpoints.split(",")
    members = [_member(directory, name) for name in checkpoints]
    tokenizer = directory.tokenizer()
    for name, (member_dir, _) in zip(checkpoints, members, strict=True):
        if member_dir is directory:
            continue
        if member_dir.tokenizer().fingerprint != tokenizer.fingerprint:
            raise UserError(
                f"{directory.path} and {name} have different vocabularies; the models "
                "of an ensemble need the same vocabulary"
            )
    with models_in("float32" if precision == "int8" else precision):
        models = [each.model(checkpoint, tokenizer) for each, checkpoint in members]
    for name, model in zip(checkpoints, models, strict=True):
        if model.vocab_size != models[0].vocab_size:
            raise UserError(
                f"{checkpoints[0]} and {name} have softmax tables of "
                f"{models[0].vocab_size:,} and {model.vocab_size:,} rows (their "
                "vocab_divisor differs); the models of an ensemble need tables of the "
                "same size"
            )
    hparams = directory.hparams()
    if precision == "int8":
        search = TranslationOptions().search(hparams, tokenizer)
        for model, (member_dir, _) in zip(models, members, strict=True):
            # The first model selects and prints the number of bits.
            weight_bits = quantize_model(
                model, member_dir, search, calibration_file, weight_bits
            )
    model_dirs = [member_dir for member_dir, _ in members]
    folders = [str(checkpoint.path) for _, checkpoint in members]
    return Loaded(models, tokenizer, hparams, model_dirs, folders, weight_bits)


def _member(directory: ModelDir, name: str) -> tuple[ModelDir, Checkpoint]:
    """Returns a checkpoint and its model directory."""
    if name in CHECKPOINT_NAMES:
        # These names have priority over folders in the current directory.
        return directory, directory.checkpoint(name)
    path = Path(name)
    if ModelDir(path).exists():
        return ModelDir(path), ModelDir(path).checkpoint()
    # DIRECTORY/averaged or DIRECTORY/checkpoints/step-00001000.
    for parent in path.absolute().parents[:2]:
        if path.exists() and ModelDir(parent).exists():
            return ModelDir(parent), ModelDir(parent).checkpoint(name)
    return directory, directory.checkpoint(name)
