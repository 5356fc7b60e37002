"""White lists of the hyper-parameters that an exported model can represent.

A format that cannot represent a hyper-parameter would export another function than the
model's. A hyper-parameter that the format's list lacks must therefore have its default
value, so that a new one is rejected by every export until its list contains it. Formats
of other programs may also require a value other than the default.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping
from typing import Any

from t2t_repro.hparams.fields import HParams
from t2t_repro.system.errors import UserError

# These fields determine the weights, but not the function that a model computes with
# them. Every export supports all of their values.
TRAINING_ONLY = (
    *("problem", "data_dir", "seed", "dropout", "attention_dropout", "ffn_dropout"),
    *("normalization", "character_coverage", "split_digits", "whole_symbols"),
    *("label_smoothing_form", "label_smoothing"),
    *("adam_beta1", "adam_beta2", "adam_epsilon", "clip_norm"),
    *("learning_rate_schedule", "learning_rate_scale", "warmup_steps"),
    *("augment_upper_case", "augment_title_case", "augment_no_end_mark"),
    *("augment_typos", "decay_start_step", "optimizer", "ema_decay"),
    "freeze",
    *("batching", "packed_length", "tokens_per_batch", "max_length", "max_shapes"),
    *("max_tokens_per_device", "rows_multiple", "precision", "xla"),
    *("train_steps", "eval_steps", "checkpoint_steps", "checkpoint_minutes"),
    *("epochs", "max_hours", "early_stopping", "validation_metric"),
    *("keep_checkpoints", "keep_every_hours", "keep_best_checkpoints", "average_last"),
)

Values = Collection[Any] | Callable[[Mapping[str, Any]], Collection[Any]]


@dataclasses.dataclass(frozen=True)
class Supported:
    """White list of an export.

    Attributes:
        export: The export in messages, e.g. "the LiteRT export".
        remedy: Alternative in messages, e.g. "export a saved_model".
        every_value: Fields of `HParams` with no restriction, besides `TRAINING_ONLY`.
        some_values: Supported values of further fields, besides the default. A function
            computes them from the values of all fields. A field whose values select an
            implementation belongs here, so that a new one is rejected, too.
        required: Supported values of fields whose default may be unsupported, too.
    """

    export: str
    remedy: str
    every_value: tuple[str, ...]
    some_values: Mapping[str, Values] = dataclasses.field(default_factory=dict)
    required: Mapping[str, Values] = dataclasses.field(default_factory=dict)

    def check(self, hparams: HParams) -> None:
        """Raises UserError that names the first unsupported hyper-parameter."""
        self._check(vars(hparams), type(hparams))

    def check_model(self, model: Any, **others: Any) -> None:
        """Checks the hyper-parameters in the configuration of a `Transformer`.

        Args:
            model: Built model.
            **others: Values of further fields of `HParams`.

        Raises:
            UserError: A value is not supported.
        """
        attention = model.encoder.layer_0.self_attention
        others["max_relative_position"] = getattr(attention, "max_relative_position", 0)
        others["self_attention_radius"] = getattr(attention, "radius", 0)
        self._check(model.get_config() | others, HParams)

    def _check(self, values: Mapping[str, Any], owner: type[HParams]) -> None:
        unrestricted = TRAINING_ONLY + self.every_value
        for field in dataclasses.fields(owner):
            name, default = field.name, field.default
            value = values.get(name, default)
            supported = self.required.get(name)
            if supported is None:
                if name in unrestricted or value == default:
                    continue
                supported = self.some_values.get(name, [default])
            if callable(supported):
                supported = supported(values)
            if value not in supported:
                raise UserError(
                    f"{name}={value}: {self.export} supports only "
                    f"{', '.join(map(str, supported))}; {self.remedy}"
                )
