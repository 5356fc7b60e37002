"""A model of another program as every importer hands it over."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from t2t_repro.hparams import HParams
from t2t_repro.hparams.fields import fields_that_change
from t2t_repro.interop.formats.array_store import Arrays
from t2t_repro.models.transformer import Transformer
from t2t_repro.models.variables import named_variables
from t2t_repro.runs.model_dir import build_model
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.tokenizer import Tokenizer

# An imported model has learned already: a low rate and a short warm-up suit it.
_TRAINING: dict[str, Any] = {
    "label_smoothing": 0.1,
    "learning_rate_schedule": "marian",
    "learning_rate_scale": 0.0003,
    "warmup_steps": 100,
    "clip_norm": 5.0,
    "tokens_per_batch": 4096,
}


@dataclass(frozen=True)
class Source:
    """A model that was read and checked, by our names.

    Attributes:
        program: Name of the program whose files they are.
        weights_file: The file of the weights, or its prefix.
        hparams: Hyper-parameters of the model, its search and its further training.
        tokenizer: Vocabularies of both sides.
        weights: Every variable of the model, float32.
        used: Number of arrays of the file that became the model.
        described: Names of the hyper-parameters that the report lists.
        unused: Names of unused arrays and settings, by kind.
        every_array: Whether all arrays of the file were used.
        languages: Languages of source and target by the files, None where unknown.
        pieces_known: Side -> pieces of its SentencePiece model that the vocabulary
            has, and all of its pieces.
        step: Number of updates done.
        moments: Adam's moments, ``m/NAME`` and ``v/NAME``; without them zeros.
        adam: "imported", or the reason why Adam starts with zeros; "" where files of
            this program never hold moments.
        notes: Further lines of the report.
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
        """Builds the model with its weights, by other hyper-parameters if given."""
        built = _build(hparams or self.hparams, self.tokenizer)
        variables = named_variables(built)
        assert {name: v.shape for name, v in variables.items()} == {
            name: value.shape for name, value in self.weights.items()
        }
        for name, variable in variables.items():
            variable.assign(self.weights[name])
        return built


def variable_shapes(
    hparams: HParams, tokenizer: Tokenizer
) -> dict[str, tuple[int, ...]]:
    """Returns the shape of every variable of a model by name, in the model's order."""
    variables = named_variables(_build(hparams, tokenizer))
    return {name: tuple(variable.shape) for name, variable in variables.items()}


def _build(hparams: HParams, tokenizer: Tokenizer) -> Transformer:
    return build_model(hparams, tokenizer.vocab_size, tokenizer.target_vocab_size)


def with_training(where: str, values: Mapping[str, Any]) -> HParams:
    """Returns hyper-parameters with which an imported model can be trained on.

    Args:
        where: The flag or the file that the values come from, for messages.
        values: Hyper-parameters of the model and its search, and those of the training
            that differ from the recipe here.

    Raises:
        UserError: A value is beyond its bounds, or two contradict each other.
    """
    d_model, heads = values["d_model"], values["num_heads"]
    if heads and d_model % heads:
        raise UserError(f"{where}: {heads} heads do not divide {d_model} channels")
    try:
        return HParams(**{**_TRAINING, **values})
    except UserError as error:
        raise UserError(f"{where}: {str(error).removeprefix('hparams: ')}") from None
