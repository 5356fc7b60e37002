"""Dropout masks that are a function of a seed."""

import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import keras
from keras import ops

from t2t_repro.layers.dropout import uniform_source
from t2t_repro.layers.functional import Shape, Tensor
from t2t_repro.system.dispatch import dispatched


@contextmanager
def dropout_seed(seed: Tensor) -> Iterator[None]:
    """Makes the masks of all `Dropout` layers called inside a function of one seed.

    Keras' own layer counts its draws in a variable, which a checkpoint would have to
    hold and every replica to share. With a seed of the run, the update and the place in
    the batch, the same update draws the same masks after a restart.

    Args:
        seed: int32 (2,). Each layer draws other numbers, by its path. Or int32
            (parts, 2), static: one seed for each of that number of equal parts of the
            batch.
    """
    token = uniform_source.set(_SeededSource(seed))
    try:
        yield
    finally:
        uniform_source.reset(token)


def given_seed() -> Tensor | None:
    """Returns the seed of the innermost `dropout_seed`, if there is one."""
    source = uniform_source.get()
    return source.seed if isinstance(source, _SeededSource) else None


@dataclass(frozen=True)
class _SeededSource:
    """Draws by a seed; each part of the first axis by its own seed, if it has several.

    The numbers are float32, in every precision: keras.random.dropout
    draws in the type of its inputs, and bfloat16 has 128 numbers from 0 to 1, so that
    of a tenth it would drop 13/128.
    """

    seed: Tensor

    def __call__(self, shape: Shape, path: str) -> Tensor:
        seed = salted(self.seed, salt_of(path))
        if len(seed.shape) == 1:
            return uniform(shape, seed)
        part = (shape[0] // seed.shape[0], *shape[1:])
        return ops.concatenate([uniform(part, own) for own in ops.unstack(seed)])


def salted(seed: Tensor, salt: int) -> Tensor:
    """Makes one seed of another, int32 (2,) or (parts, 2)."""
    return ops.bitwise_xor(seed, ops.convert_to_tensor([0, salt], "int32"))


def salt_of(path: str) -> int:
    """Makes a number of a layer's path, from 0 to 2^31 - 1.

    What layers of a stack share is the number of the path in the first of them.
    """
    found = re.match(r"(.*/layer_)\d+(?=/)", path)
    if found is None:
        return _hash(path)
    return _hash(found[0]) ^ _hash(found[1] + "0" + path[found.end() :])


def _hash(path: str) -> int:
    return zlib.crc32(path.encode()) & 0x7FFFFFFF


class _Seed(keras.random.SeedGenerator):
    """Hands a given seed to ``keras.random``, which asks for a generator."""

    def __init__(self, seed: Tensor) -> None:
        self._seed = seed

    def next(self, ordered: bool = True) -> Tensor:
        if keras.backend.backend() == "jax":  # Its keys have no sign.
            return ops.cast(self._seed, "uint32")
        return self._seed


@dispatched
def uniform(shape: Shape, seed: Tensor) -> Tensor:
    """Draws numbers from 0 to less than 1, float32, by a seed, int32 (2,)."""
    return keras.random.uniform(shape, dtype="float32", seed=_Seed(seed))
