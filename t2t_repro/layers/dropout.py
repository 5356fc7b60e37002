"""Dropout whose mask is a function of a seed, not of hidden state."""

import zlib
from typing import Any

import keras
from keras import ops

from t2t_repro.layers.typing import Tensor


class _GivenSeed(keras.random.SeedGenerator):
    """Hands a given seed to ``keras.random``, which asks for a generator."""

    def __init__(self, seed: Tensor) -> None:
        self._given = seed

    def next(self, ordered: bool = True) -> Tensor:
        return self._given


def salt_of(layer: keras.layers.Layer) -> int:
    """Makes a number of a layer's path, from 0 to 2^31 - 1."""
    return zlib.crc32((layer.path or layer.name).encode()) & 0x7FFFFFFF


def salted(seed: Tensor, salt: int) -> Tensor:
    """Makes one seed of another, int32 (2,)."""
    return ops.bitwise_xor(seed, ops.convert_to_tensor([0, salt], "int32"))


class Dropout(keras.layers.Layer):
    """Dropout (paper section 5.4) as a pure function of its input and a seed.

    Keras' own layer counts its draws in a variable that a checkpoint would have to
    hold and every replica to share. Here the training step passes a seed, and the
    layer adds a number of its own made from its path: the same step draws the same
    masks after a restart.

    Args:
        rate: the share of elements set to zero.
    """

    def __init__(self, rate: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rate = rate
        self._salt = 0

    def build(self) -> None:
        """Derives the layer's own number from its path."""
        self._salt = salt_of(self)
        self.built = True

    def call(self, x: Tensor, seed: Tensor | None = None) -> Tensor:
        """Drops elements, or returns ``x`` when there is no seed (inference).

        Args:
            x: float, any shape.
            seed: int32 (2,), or None.

        Returns:
            Like ``x``; kept elements are divided by ``1 - rate``.
        """
        if seed is None or self.rate == 0.0:
            return x
        own = salted(seed, self._salt)
        # keras.random.dropout draws the same numbers in float32, but otherwise in the
        # type of x: bfloat16 has 128 from 0 to 1, so of a tenth it would drop 13/128.
        drawn = keras.random.uniform(
            ops.shape(x), dtype="float32", seed=_GivenSeed(own)
        )
        return ops.where(drawn >= self.rate, x * (1.0 / (1.0 - self.rate)), 0)
