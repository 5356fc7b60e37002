"""A tensor2tensor checkpoint: its variables sorted by what they are for."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import tensorflow as tf

from t2t_repro.interop.tensor2tensor.variable_names import from_t2t, t2t_variables_of
from t2t_repro.runs.checkpoints import TensorFile
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
_FILE_ENDING = re.compile(r"\.(index|meta|data-\d{5}-of-\d{5})$")


@dataclass(frozen=True)
class AdamState:
    """Adam's moments, or the zeros that stand for them."""

    # By the names of `Adam.state`: ``m/NAME`` and ``v/NAME``.
    moments: dict[str, np.ndarray]
    missing: str  # Why they are zeros; "" where they are the checkpoint's own.


@dataclass(frozen=True)
class Sorted:
    """The names of a checkpoint's variables by what they are for."""

    model: list[str]  # The model's.
    slots: list[str]  # Adam's moments of these.
    # Kind -> names that a model here has no use for.
    unused: dict[str, list[str]] = field(default_factory=dict)


class T2TCheckpoint:
    """Reads a model and Adam's state from a checkpoint of tensor2tensor.

    `path` is its prefix, one of its files, or its folder; none, several, or a damaged
    one is a UserError.
    """

    def __init__(self, path: Path) -> None:
        self.prefix = find(path)
        self._file = TensorFile(self.prefix)
        self.shapes = self._file.shapes()

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

    def sort(self, shapes: Mapping[str, tuple[int, ...]], norm: str) -> Sorted:
        """Sorts the variables for a model: `shapes` by our names, `norm` post or pre.

        A variable that the model lacks, or one too many, is a UserError.
        """
        wanted = t2t_variables_of(shapes, norm, self.shapes)
        missing = sorted(wanted.keys() - self.shapes.keys())
        slots = {slot for name in wanted for slot in _slots_of(name)}
        used = wanted.keys() | slots | set(_POWERS.values()) | {_STEP}
        rest = sorted(self.shapes.keys() - used)
        surplus = [name for name in rest if name.startswith(_MODEL)]
        self._refuse_another_model(missing, surplus)
        for name, shape in wanted.items():
            if self.shapes[name] != shape:
                raise UserError(
                    f"{self.prefix}: {name} is {self.shapes[name]}, but {shape} by the "
                    "hyper-parameters; give those of this model"
                )
        unused: dict[str, list[str]] = {}
        for name in rest:
            unused.setdefault(_kind(name), []).append(name)
        there = sorted(slots & self.shapes.keys())
        return Sorted(sorted(wanted), there, unused)

    def weights(
        self, shapes: Mapping[str, tuple[int, ...]], norm: str
    ) -> dict[str, np.ndarray]:
        """Reads the model's values, float32, by our names; arguments as `sort`.

        Damaged bytes, or others than 32-bit floats, are a UserError.
        """
        names = t2t_variables_of(shapes, norm, self.shapes)
        return from_t2t({n: self._floats(n) for n in names}, shapes, norm)

    def step(self) -> int:
        """Returns the number of updates done, 0 where the checkpoint has none."""
        if _STEP not in self.shapes:
            return 0
        return int(self._file.read(_STEP))

    def adam(
        self, shapes: Mapping[str, tuple[int, ...]], norm: str, betas: dict[str, float]
    ) -> AdamState:
        """Reads Adam's moments by our names, or says why there are none.

        `shapes` and `norm` are as for `sort`; `betas` has "beta1" and "beta2". Raises
        as `weights`.
        """
        names = t2t_variables_of(shapes, norm, self.shapes)
        missing = self._why_no_moments(names, betas)
        moments: dict[str, np.ndarray] = {}
        for ours, theirs in _SLOTS.items():
            if missing:
                values = {n: np.zeros(s, np.float32) for n, s in shapes.items()}
            else:
                slots = {n: self._floats(f"{_OPTIMIZER}{n}/{theirs}") for n in names}
                values = from_t2t(slots, shapes, norm)
            moments |= {f"{ours}/{name}": value for name, value in values.items()}
        return AdamState(moments, missing)

    def _why_no_moments(self, names: Iterable[str], betas: dict[str, float]) -> str:
        slots = [slot for name in names for slot in _slots_of(name)]
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
            found = float(self._file.read(name)) if name in self.shapes else expected
            if not np.isclose(found, expected, rtol=1e-3, atol=1e-6):
                return (
                    f"the checkpoint's {name} is {found:.4g}, not {betas[beta]:g}^"
                    f"{step + 1}: its moments are not those of step {step:,}"
                )
        return ""

    def _floats(self, name: str) -> np.ndarray:
        value = self._file.read(name)
        if value.dtype != np.float32:
            raise UserError(
                f"{self.prefix}: {name} is {value.dtype}; only 32-bit floats can be "
                "imported"
            )
        return value

    def _refuse_another_model(self, missing: list[str], surplus: list[str]) -> None:
        if missing or surplus:
            lacks = f" lacks {some(missing)}" if missing else ""
            has = f" has {some(surplus)} besides" if surplus else ""
            raise UserError(
                f"{self.prefix}{lacks}{' and' if lacks and has else ''}{has}: it is of "
                "another model than the hyper-parameters say, or of another version "
                "of tensor2tensor"
            )


def find(path: Path) -> Path:
    """Returns the prefix of a checkpoint, given itself, one of its files or its folder.

    Of a folder it is what the file `checkpoint` names, or else the only one; none or
    several are a UserError.
    """
    if not path.is_dir():
        prefix = path.with_name(_FILE_ENDING.sub("", path.name))
        if not Path(f"{prefix}.index").is_file():
            raise UserError(
                f"--checkpoint {path}: {prefix.name}.index does not exist; name a "
                "checkpoint's prefix, such as model.ckpt-250000, or its folder"
            )
        return prefix
    found = sorted(p.with_suffix("") for p in path.glob("*.index"))
    named = _newest(path)
    if named in found:
        return named
    if len(found) != 1:
        names = some([prefix.name for prefix in found]) or "no checkpoint"
        raise UserError(f"--checkpoint {path} holds {names}; name one by its prefix")
    return found[0]


def _newest(folder: Path) -> Path | None:
    """Returns the prefix that the folder's file `checkpoint` names, if it has one.

    Only its name counts: the folder may have been moved since.
    """
    if not (folder / "checkpoint").is_file():
        return None
    try:
        state = tf.train.get_checkpoint_state(str(folder))
    except (ValueError, tf.errors.OpError):  # A copy that was cut off, perhaps.
        return None
    return folder / Path(state.model_checkpoint_path).name if state else None


def _slots_of(name: str) -> list[str]:
    return [f"{_OPTIMIZER}{name}/{slot}" for slot in _SLOTS.values()]


def _kind(name: str) -> str:
    """Returns what an unused variable is for."""
    if name.startswith(_STATISTICS):
        return "statistics"
    return "optimizer" if name.startswith(_OPTIMIZER) else "unknown"


def some(names: Iterable[object], most: int = 4) -> str:
    """Lists names, the first few of many."""
    listed = [str(name) for name in names]
    more = len(listed) - most
    told = ", ".join(listed[:most])
    return f"{told} and {more:,} more" if more > 0 else told
