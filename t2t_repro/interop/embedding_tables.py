"""Conversion between other programs' embedding tables and this package's variables."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from t2t_repro.interop.formats.array_store import Arrays
from t2t_repro.interop.vocabulary import Vocabularies
from t2t_repro.layers.embedding import RULED_OUT
from t2t_repro.system.errors import UserError


@dataclass(frozen=True)
class Tables:
    """Embedding tables of another program's model.

    Tied tables are the same object.

    Attributes:
        source: Input embedding of the encoder: float (source_vocab, d_model).
        target: Input embedding of the decoder: float (target_vocab, d_model).
        softmax: Softmax weights: float (target_vocab, d_model).
        bias: Softmax bias: float (target_vocab,).
    """

    source: np.ndarray
    target: np.ndarray
    softmax: np.ndarray
    bias: np.ndarray

    @classmethod
    def from_variables(cls, weights: Arrays) -> "Tables":
        """Returns the tables of this package's variables, with the row of padding.

        Args:
            weights: Variables of a model with a softmax bias, by name.
        """
        is_shared = "embedding/table" in weights
        name = "embedding" if is_shared else "softmax"
        softmax, bias = weights[f"{name}/table"], weights[f"{name}/bias"]
        source = softmax if is_shared else weights["input_embedding/table"]
        target = weights.get("target_embedding/table", softmax)
        return cls(source, target, softmax, bias)

    def tying(self) -> dict[str, bool]:
        """Returns the values of `share_embeddings` and `tie_target`."""
        shared = self.source is self.target and self.target is self.softmax
        tie_target = not shared and self.target is self.softmax
        return {"share_embeddings": shared, "tie_target": tie_target}

    def variables(self, vocabularies: Vocabularies, file: Path) -> Arrays:
        """Returns this package's embedding variables by name.

        The rows follow `Vocabulary.order` after a row of zeros for padding, and the
        softmax bias of padding is `RULED_OUT`.

        Args:
            vocabularies: Vocabularies of both sides.
            file: Path of the weight file, for messages.

        Raises:
            UserError: A table does not have one row per piece of its vocabulary.
        """
        sides = vocabularies.sides
        tables = self.source, self.target, self.softmax
        names = "source embedding", "target embedding", "softmax"
        for name, table, side in zip(names, tables, (*sides, sides[1]), strict=True):
            if len(table) != len(side.pieces):
                raise UserError(
                    f"{file}: the {name} has {len(table):,} rows, but {side.file} has "
                    f"{len(side.pieces):,} pieces; the files belong to different "
                    "models, or one is truncated"
                )
        source, target = (side.order for side in sides)
        tying = self.tying()
        name = "embedding" if tying["share_embeddings"] else "softmax"
        bias = _reorder(self.bias, target)
        bias[0] = RULED_OUT
        arrays = {
            f"{name}/table": _reorder(self.softmax, target),
            f"{name}/bias": bias,
        }
        if not tying["share_embeddings"]:
            arrays["input_embedding/table"] = _reorder(self.source, source)
            if not tying["tie_target"]:
                arrays["target_embedding/table"] = _reorder(self.target, target)
        return arrays


def _reorder(rows: np.ndarray, order: Sequence[int]) -> np.ndarray:
    """Returns a row of zeros, followed by the rows with the indices in `order`."""
    return np.concatenate([np.zeros_like(rows[:1]), rows[order]])
