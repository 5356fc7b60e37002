"""Measurement of the activation ranges for int8 quantization."""

from collections.abc import Callable
from itertools import chain
from typing import Self

import numpy as np
import tensorflow as tf

from t2t_repro.fast.normalization import normalize_in_float64
from t2t_repro.fast.quantization import (
    ActivationRange,
    Array,
    group_weights,
    matmul_groups,
    share_matmul,
)
from t2t_repro.layers.add_and_norm import LayerNormalization
from t2t_repro.models.transformer import Transformer


class RangeObserver:
    """Context manager that records the activations' range in each matmul of a model.

    It records the minimum and maximum of each row, that is of each token.

    Args:
        model: The model, already built.
    """

    def __init__(self, model: Transformer) -> None:
        self._model = model
        self._groups = matmul_groups(model)
        self._extremes: dict[str, list[Array]] = {name: [] for name in self._groups}

    def __enter__(self) -> Self:
        """Replaces the matmuls with observed float32 matmuls."""
        for name, group in self._groups.items():
            share_matmul(group, self._observe_matmul(name))
        for norm in _norms(self._model):
            norm.normalize = normalize_in_float64
        return self

    def __exit__(self, *_: object) -> None:
        """Restores the layers' own matmuls."""
        for layer in chain.from_iterable(self._groups.values()):
            del layer.matmul
        for norm in _norms(self._model):
            del norm.normalize

    def bounds(self, fraction: float) -> dict[str, ActivationRange]:
        """Returns the activation range of each matmul.

        The range includes 0. A matmul that was not computed has the range 0 to 1.

        Args:
            fraction: Fraction of the tokens whose maximum is at most the upper end of
                the range. The minimum of the same fraction is at least the lower end.
        """
        ranges = {}
        for name, rows in self._extremes.items():
            lows, highs = np.concatenate(rows, axis=1) if rows else np.zeros((2, 1))
            low = min(0.0, float(np.quantile(lows, 1 - fraction, method="lower")))
            high = max(0.0, float(np.quantile(highs, fraction, method="higher")))
            ranges[name] = ActivationRange(low, high if high > low else low + 1.0)
        return ranges

    def _observe_matmul(self, name: str) -> Callable[..., tf.Tensor]:
        # As arrays, they would be copied into each graph.
        matrix, bias = map(tf.constant, group_weights(self._groups[name]))
        rows = self._extremes[name]

        def record(lows: Array, highs: Array) -> None:
            rows.append(np.stack([lows, highs]))

        def matmul(x: tf.Tensor, columns: slice | None = None) -> tf.Tensor:
            ends = [tf.reduce_min(x, axis=1), tf.reduce_max(x, axis=1)]
            with tf.control_dependencies([tf.numpy_function(record, ends, [])]):
                y = tf.matmul(x, matrix) + bias
                return y if columns is None else y[:, columns]

        return matmul


def _norms(model: Transformer) -> list[LayerNormalization]:
    return [x for x in model._flatten_layers() if isinstance(x, LayerNormalization)]
