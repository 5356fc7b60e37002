"""Another program's model in the common form that every importer returns."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from t2t_repro.hparams import HParams
from t2t_repro.hparams.fields import fields_that_change
from t2t_repro.interop.formats.array_store import Arrays
from t2t_repro.models.transformer import Transformer
from t2t_repro.models.variables import named_variables, skip_initialization
from t2t_repro.runs.model_dir import build_model
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.tokenizer import Tokenizer

FINE_TUNING: dict[str, Any] = {
    "learning_rate_schedule": "marian",
    "learning_rate_scale": 0.0003,
    "warmup_steps": 100,
}
"""Learning rate of trained weights without Adam's moments: low, with a short warm-up.

At a later step of the original schedule, Adam would divide by second moments that are
still far too small, so that the first updates would be several times too large."""

_TRAINING = {
    **FINE_TUNING,
    "label_smoothing": 0.1,
    "clip_norm": 5.0,
    "tokens_per_batch": 4096,
}


@dataclass(frozen=True)
class Source:
    """Validated model of another program, converted to this package's names.

    Attributes:
        program: Name of the program that wrote the files.
        weights_file: Path of the weight file, or its prefix.
        hparams: Hyper-parameters of the model, its search and its fine-tuning.
        tokenizer: Tokenizer of both sides.
        weights: Values of all variables by name, float32.
        used: Number of imported arrays of the weights.
        described: Names of the hyper-parameters in `described_hparams`.
        unused: Names of unused arrays and settings by category.
        every_array: Whether all arrays of the file were imported.
        languages: Source and target language in the files; None if unknown.
        pieces_known: For "source" and "target", the number of SentencePiece pieces in
            the vocabulary and the total number of pieces.
        step: Step at which training continues.
        moments: Adam's moments, ``m/NAME`` and ``v/NAME``; zeros if empty.
        adam: "imported", the reason why Adam starts with zero moments, or "" if the
            program never stores moments.
        notes: Additional lines for the text report.
    """

    program: str
    weights_file: Path
    hparams: HParams
    tokenizer: Tokenizer
    weights: Arrays
    used: int
    described: frozenset[str] = fields_that_change("function")
    unused: dict[str, list[str]] = field(default_factory=dict)
    every_array: bool = True
    languages: tuple[str | None, str | None] = (None, None)
    pieces_known: dict[str, tuple[int, int]] = field(default_factory=dict)
    step: int = 0
    moments: Arrays = field(default_factory=dict)
    adam: str = ""
    notes: tuple[str, ...] = ()

    def build(self, hparams: HParams | None = None) -> Transformer:
        """Returns the built model with the imported weights.

        Args:
            hparams: Hyper-parameters; default: those of the source.
        """
        built = _build(hparams or self.hparams, self.tokenizer)
        variables = named_variables(built)
        assert {name: v.shape for name, v in variables.items()} == {
            name: value.shape for name, value in self.weights.items()
        }
        for name, variable in variables.items():
            variable.assign(self.weights[name])
        return built

    def described_hparams(self) -> dict[str, Any]:
        """Returns the hyper-parameters that the report lists."""
        values = self.hparams.to_dict().items()
        return {name: value for name, value in values if name in self.described}


def variable_shapes(
    hparams: HParams, tokenizer: Tokenizer
) -> dict[str, tuple[int, ...]]:
    """Returns the variables' shapes by name, in the order of the model."""
    variables = named_variables(_build(hparams, tokenizer))
    return {name: tuple(variable.shape) for name, variable in variables.items()}


def _build(hparams: HParams, tokenizer: Tokenizer) -> Transformer:
    with skip_initialization():
        return build_model(hparams, tokenizer.vocab_size, tokenizer.target_vocab_size)


def add_training_defaults(where: str, values: Mapping[str, Any]) -> HParams:
    """Returns complete hyper-parameters, with defaults for fine-tuning.

    Args:
        where: Flag or file of the values, for messages.
        values: Hyper-parameters of the model and its search, and of the training
            where they differ from the defaults.

    Raises:
        UserError: A value is out of range, or two values contradict each other.
    """
    try:
        return HParams(**{**_TRAINING, **values})
    except UserError as error:
        raise UserError(f"{where}: {str(error).removeprefix('hparams: ')}") from None
