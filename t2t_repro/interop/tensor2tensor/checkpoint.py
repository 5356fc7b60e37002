"""Reader of the weights and the Adam state in tensor2tensor checkpoints."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from t2t_repro.interop.formats.array_store import Arrays, format_names
from t2t_repro.interop.formats.tensor_bundle import find, open_bundle
from t2t_repro.interop.tensor2tensor.former_names import use_current_names
from t2t_repro.interop.tensor2tensor.variable_names import (
    convert_from_t2t,
    list_t2t_shapes,
)
from t2t_repro.system.errors import UserError

_MODEL = "transformer/"
_OPTIMIZER = "training/"
_STEP = "global_step"
# Maps prefixes of the names in `Adam.state` to suffixes of tensor2tensor's names.
_SLOTS = {"m": "Adam", "v": "Adam_1"}
_POWERS = {"beta1": f"{_OPTIMIZER}beta1_power", "beta2": f"{_OPTIMIZER}beta2_power"}
_STATISTICS = ("losses_avg/", "train_stats/")
_TABLE = re.compile(
    r"transformer/symbol_modality_(\d+)_(\d+)/(shared|input_emb|target_emb|softmax)/"
    r"weights_\d+"
)

Shapes = Mapping[str, tuple[int, ...]]
"""Shapes of variables by this package's names."""


class T2TCheckpoint:
    """Checkpoint of tensor2tensor.

    Attributes:
        store: Variables of the checkpoint.
        prefix: Prefix of the checkpoint's files.
        shapes: Shapes of all variables by the names of tensor2tensor 1.15.
        attention_bias: Whether the attention has biases, as in versions before 1.3.
    """

    def __init__(self, path: Path) -> None:
        """Opens a checkpoint.

        Args:
            path: Prefix, file or folder of the checkpoint.

        Raises:
            UserError: The checkpoint is missing, ambiguous or damaged.
        """
        self.store = use_current_names(open_bundle(find(path)))
        self.prefix, self.shapes = self.store.file, self.store.shapes
        self.attention_bias = any(
            name.endswith("/output_transform/bias") for name in self.shapes
        )

    def check_tables(
        self, vocab_size: int, table_rows: int, d_model: int, shared: bool
    ) -> None:
        """Checks the sizes of the embedding tables, which are part of their names.

        Args:
            vocab_size: Number of subwords in the vocabulary.
            table_rows: `vocab_size`, rounded up to a multiple of `vocab_divisor`.
            d_model: Width of the embeddings.
            shared: Whether source, target and softmax share one table.

        Raises:
            UserError: The checkpoint has tables of different sizes or sharing.
        """
        matches = [m for m in map(_TABLE.fullmatch, self.shapes) if m]
        if not matches:
            scopes = sorted({name.split("/")[0] for name in self.shapes})
            raise UserError(
                f"{self.prefix} contains no embedding of a tensor2tensor Transformer "
                f"(its variables begin with {format_names(scopes)}); give another "
                "checkpoint, "
                "or import one of OpenNMT-tf with python -m t2t_repro.import_opennmt"
            )
        widths = {int(match[2]) for match in matches}
        if widths != {d_model}:
            raise UserError(
                f"{self.prefix} has embeddings of width "
                f"{format_names(sorted(widths))}, but "
                f"hidden_size is {d_model}; give the hyper-parameters of this model"
            )
        sizes = {int(match[1]) for match in matches}
        if len(sizes) > 1:
            raise UserError(
                f"{self.prefix} has vocabularies of {format_names(sorted(sizes))} "
                "subwords "
                "for source and target; only models with one vocabulary for both are "
                "supported"
            )
        if sizes != {table_rows}:
            padded = "" if table_rows == vocab_size else f" (padded to {table_rows})"
            raise UserError(
                f"{self.prefix} has a vocabulary of {sizes.pop()} subwords, but "
                f"--vocab_file has {vocab_size}{padded}; give the vocabulary that the "
                "model was trained with"
            )
        if shared != ({match[3] for match in matches} == {"shared"}):
            raise UserError(
                f"{self.prefix} has {'separate tables' if shared else 'one table'} for "
                "source, target and softmax, but "
                f"shared_embedding_and_softmax_weights is {str(shared).lower()}; give "
                "the hyper-parameters of this model"
            )

    def weights(self, shapes: Shapes, norm: str) -> Arrays:
        """Returns the model's weights by this package's names.

        Args:
            shapes: Shapes of the model's variables by this package's names.
            norm: Placement of the layer normalization, "post" or "pre".

        Raises:
            UserError: A model variable is missing, surplus or damaged, or has an
                unexpected shape.
        """
        required = list_t2t_shapes(shapes, norm, self.shapes)
        missing = sorted(required.keys() - self.shapes.keys())
        others = self.shapes.keys() - required.keys()
        surplus = sorted(name for name in others if name.startswith(_MODEL))
        if missing or surplus:
            lacks = f" lacks {format_names(missing)}" if missing else ""
            has = f" has unexpected arrays ({format_names(surplus)})" if surplus else ""
            raise UserError(
                f"{self.prefix}{lacks}{' and' if lacks and has else ''}{has}; give the "
                "hyper-parameters of this model (names are those of tensor2tensor 1.15)"
            )
        self.store.drop([_STEP, *_POWERS.values()])
        values = {name: self.store.take(name, *s) for name, s in required.items()}
        return convert_from_t2t(values, shapes, norm)

    def step(self) -> int:
        """Returns the training step, or 0 if the checkpoint does not contain it."""
        return int(self.store.read(_STEP)) if _STEP in self.shapes else 0

    def moments(
        self, shapes: Shapes, norm: str, betas: dict[str, float]
    ) -> tuple[Arrays, str]:
        """Returns Adam's moments, or the reason why they cannot be used.

        Args:
            shapes: Shapes of the model's variables by this package's names.
            norm: Placement of the layer normalization, "post" or "pre".
            betas: Adam's parameters "beta1" and "beta2".

        Returns:
            The moments by their names in `Adam.state`, ``m/NAME`` and ``v/NAME``, and
            "". If they cannot be used, an empty dictionary and the reason.

        Raises:
            UserError: A moment is damaged or has an unexpected shape.
        """
        variables = list_t2t_shapes(shapes, norm, self.shapes)
        if reason := self._reason_without_moments(variables, betas):
            return {}, reason
        moments: Arrays = {}
        for ours, theirs in _SLOTS.items():
            slots = {
                name: self.store.take(f"{_OPTIMIZER}{name}/{theirs}", *shape)
                for name, shape in variables.items()
            }
            values = convert_from_t2t(slots, shapes, norm)
            moments |= {f"{ours}/{name}": value for name, value in values.items()}
        return moments, ""

    def unused(self) -> dict[str, list[str]]:
        """Returns the names of variables that have not been taken, by category."""
        unused: dict[str, list[str]] = {}
        for name in sorted(self.store.remaining):
            unused.setdefault(_category(name), []).append(name)
        return unused

    def _reason_without_moments(
        self, names: Iterable[str], betas: dict[str, float]
    ) -> str:
        """Returns the reason why the moments cannot be used, or ""."""
        ends = _SLOTS.values()
        slots = [f"{_OPTIMIZER}{name}/{end}" for name in names for end in ends]
        count = sum(slot in self.shapes for slot in slots)
        if not count:
            return "the checkpoint contains no moments"
        if count < len(slots):
            return f"the checkpoint contains {count:,} of {len(slots):,} moments"
        step = self.step()
        for beta, name in _POWERS.items():
            # After n steps, this variable is beta^(n + 1). It is not imported, because
            # training computes the power from the step. Differences below 1e-6 do not
            # affect the next step.
            expected = betas[beta] ** (step + 1)
            value = float(self.store.read(name)) if name in self.shapes else expected
            if not np.isclose(value, expected, rtol=1e-3, atol=1e-6):
                return (
                    f"the checkpoint's {name} is {value:.4g}, not {betas[beta]:g}^"
                    f"{step + 1}: its moments do not belong to step {step:,}"
                )
        return ""


def _category(name: str) -> str:
    """Returns the category of an unused variable in the report."""
    if name.startswith(_STATISTICS):
        return "statistics"
    if name.startswith(_OPTIMIZER):
        is_slot = name.rpartition("/")[2] in _SLOTS.values()
        return "Adam's moments" if is_slot else "optimizer"
    return "unknown"
