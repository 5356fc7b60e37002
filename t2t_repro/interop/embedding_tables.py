"""Another program's embedding tables, as variables of our model."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from t2t_repro.interop.formats.array_store import Arrays
from t2t_repro.interop.vocabulary import Vocabularies
from t2t_repro.layers.embedding import RULED_OUT


@dataclass(frozen=True)
class Tables:
    """The embedding tables of another program's model; tied ones are the same object.

    Attributes:
        source: Table (V, d_model) of the encoder's input.
        target: Table (V, d_model) of the decoder's input.
        softmax: Table (V, d_model) of the softmax.
        bias: Bias (V,) of the softmax.
    """

    source: np.ndarray
    target: np.ndarray
    softmax: np.ndarray
    bias: np.ndarray

    def tying(self) -> dict[str, bool]:
        """Returns the hyper-parameters that describe which tables are one."""
        shared = self.source is self.target and self.target is self.softmax
        tie_target = not shared and self.target is self.softmax
        return {"share_embeddings": shared, "tie_target": tie_target}

    def variables(self, vocabularies: Vocabularies) -> Arrays:
        """Returns our variables by name, rows in our order, padding ruled out."""
        source, target = (side.order for side in vocabularies.sides)
        tying = self.tying()
        name = "embedding" if tying["share_embeddings"] else "softmax"
        bias = _in_order(self.bias, target)
        bias[0] = RULED_OUT
        arrays = {
            f"{name}/table": _in_order(self.softmax, target),
            f"{name}/bias": bias,
        }
        if not tying["share_embeddings"]:
            arrays["input_embedding/table"] = _in_order(self.source, source)
            if not tying["tie_target"]:
                arrays["target_embedding/table"] = _in_order(self.target, target)
        return arrays


def _in_order(rows: np.ndarray, order: Sequence[int]) -> np.ndarray:
    """Takes rows in an order, after one of zeros."""
    return np.concatenate([np.zeros_like(rows[:1]), rows[order]])
