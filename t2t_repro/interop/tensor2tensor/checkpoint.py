"""A tensor2tensor checkpoint: its variables sorted by what they are for."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from t2t_repro.interop.formats.array_store import Arrays, some
from t2t_repro.interop.formats.tensor_bundle import find, open_bundle
from t2t_repro.interop.tensor2tensor.variable_names import from_t2t, t2t_variables_of
from t2t_repro.system.errors import UserError

_MODEL = "transformer/"
_OPTIMIZER = "training/"
_STEP = "global_step"
_SLOTS = {"m": "Adam", "v": "Adam_1"}  # Ours -> tensor2tensor's.
_POWERS = {"beta1": f"{_OPTIMIZER}beta1_power", "beta2": f"{_OPTIMIZER}beta2_power"}
_STATISTICS = ("losses_avg/", "train_stats/")
_TABLE = re.compile(
    r"transformer/symbol_modality_(\d+)_(\d+)/(shared|input_emb|target_emb|softmax)/"
    r"weights_\d+"
)

Shapes = Mapping[str, tuple[int, ...]]
"""Shapes of variables by our names."""


class T2TCheckpoint:
    """Reads a model and Adam's state from a checkpoint of tensor2tensor.

    Attributes:
        store: Its variables.
    """

    def __init__(self, path: Path) -> None:
        """Opens a checkpoint.

        Args:
            path: Its prefix, one of its files, or its folder.

        Raises:
            UserError: There is none, there are several, or it is damaged.
        """
        self.store = open_bundle(find(path), ("float32",))
        self.prefix, self.shapes = self.store.file, self.store.shapes

    def check_tables(
        self, vocab_size: int, table_rows: int, d_model: int, shared: bool
    ) -> None:
        """Checks the embedding tables, whose names tell their sizes.

        `table_rows` is `vocab_size` rounded up as the hyper-parameters say; `shared`:
        one table is all three. A checkpoint of another size or kind is a UserError.
        """
        found = [m for m in map(_TABLE.fullmatch, self.shapes) if m]
        if not found:
            scopes = sorted({name.split("/")[0] for name in self.shapes})
            raise UserError(
                f"{self.prefix} holds no embedding of a tensor2tensor Transformer "
                f"(its variables begin with {some(scopes)})"
            )
        widths = {int(match[2]) for match in found}
        if widths != {d_model}:
            raise UserError(
                f"{self.prefix} has embeddings of width {some(sorted(widths))}, but "
                f"hidden_size is {d_model}; give the hyper-parameters of this model"
            )
        sizes = {int(match[1]) for match in found}
        if len(sizes) > 1:
            raise UserError(
                f"{self.prefix} has vocabularies of {some(sorted(sizes))} subwords "
                "for source and target; a model here has one for both, so it cannot "
                "be imported"
            )
        if sizes != {table_rows}:
            padded = "" if table_rows == vocab_size else f" (padded to {table_rows})"
            raise UserError(
                f"{self.prefix} is of a vocabulary of {sizes.pop()} subwords, but "
                f"--vocab_file has {vocab_size}{padded}; give the vocabulary that the "
                "model was trained with"
            )
        if shared != ({match[3] for match in found} == {"shared"}):
            raise UserError(
                f"{self.prefix} has {'separate tables' if shared else 'one table'} for "
                "source, target and softmax, but "
                f"shared_embedding_and_softmax_weights is {str(shared).lower()}; give "
                "the hyper-parameters of this model"
            )

    def weights(self, shapes: Shapes, norm: str) -> Arrays:
        """Takes the model's values by our names; `norm` is "post" or "pre".

        Raises:
            UserError: A variable is missing, damaged, of another shape, or one of the
                model's too many.
        """
        wanted = t2t_variables_of(shapes, norm, self.shapes)
        missing = sorted(wanted.keys() - self.shapes.keys())
        others = self.shapes.keys() - wanted.keys()
        surplus = sorted(name for name in others if name.startswith(_MODEL))
        if missing or surplus:
            lacks = f" lacks {some(missing)}" if missing else ""
            has = f" has {some(surplus)} besides" if surplus else ""
            raise UserError(
                f"{self.prefix}{lacks}{' and' if lacks and has else ''}{has}: it is of "
                "another model than the hyper-parameters say, or of another version "
                "of tensor2tensor"
            )
        self.store.drop([_STEP, *_POWERS.values()])
        found = {name: self.store.take(name, *s) for name, s in wanted.items()}
        return from_t2t(found, shapes, norm)

    def step(self) -> int:
        """Returns the number of updates done, 0 where the checkpoint has none."""
        return int(self.store.read(_STEP)) if _STEP in self.shapes else 0

    def moments(
        self, shapes: Shapes, norm: str, betas: dict[str, float]
    ) -> tuple[Arrays, str]:
        """Takes Adam's moments by our names, or explains why there are none.

        `shapes` and `norm` are as for `weights`; `betas` has "beta1" and "beta2".
        Raises as `weights`.

        Returns:
            The moments by the names of `Adam.state`, ``m/NAME`` and ``v/NAME``, and the
            reason why there are none, "" if there are.
        """
        wanted = t2t_variables_of(shapes, norm, self.shapes)
        if missing := self._why_no_moments(wanted, betas):
            return {}, missing
        moments: Arrays = {}
        for ours, theirs in _SLOTS.items():
            slots = {
                name: self.store.take(f"{_OPTIMIZER}{name}/{theirs}", *shape)
                for name, shape in wanted.items()
            }
            values = from_t2t(slots, shapes, norm)
            moments |= {f"{ours}/{name}": value for name, value in values.items()}
        return moments, ""

    def unused(self) -> dict[str, list[str]]:
        """Returns the names of the variables that nothing has taken, by kind."""
        unused: dict[str, list[str]] = {}
        for name in sorted(self.store.remaining):
            unused.setdefault(_kind(name), []).append(name)
        return unused

    def _why_no_moments(self, names: Iterable[str], betas: dict[str, float]) -> str:
        ends = _SLOTS.values()
        slots = [f"{_OPTIMIZER}{name}/{end}" for name in names for end in ends]
        there = sum(slot in self.shapes for slot in slots)
        if not there:
            return "the checkpoint holds none"
        if there < len(slots):
            return f"the checkpoint holds {there:,} of {len(slots):,} moments"
        step = self.step()
        for beta, name in _POWERS.items():
            # After n updates it is beta^(n + 1); ours is computed from the step.
            # Less than a millionth changes no update.
            expected = betas[beta] ** (step + 1)
            found = float(self.store.read(name)) if name in self.shapes else expected
            if not np.isclose(found, expected, rtol=1e-3, atol=1e-6):
                return (
                    f"the checkpoint's {name} is {found:.4g}, not {betas[beta]:g}^"
                    f"{step + 1}: its moments are not those of step {step:,}"
                )
        return ""


def _kind(name: str) -> str:
    """Returns what an unused variable is for."""
    if name.startswith(_STATISTICS):
        return "statistics"
    if name.startswith(_OPTIMIZER):
        is_slot = name.rpartition("/")[2] in _SLOTS.values()
        return "Adam's moments" if is_slot else "optimizer"
    return "unknown"
