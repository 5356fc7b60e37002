"""Dropout masks that depend only on a given seed."""

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
    """Draws the masks of all `Dropout` layers called in this context from one seed.

    Keras' layer counts its draws in a variable, which checkpoints would have to store
    and replicas to share. With a seed that depends on the run, the step and the place
    in the batch, a step draws the same masks after a restart.

    Args:
        seed: int32 (2,); each layer combines it with its path. Or int32 (shards, 2) of
            static shape: one seed per equal shard of the batch.
    """
    token = uniform_source.set(_SeededSource(seed))
    try:
        yield
    finally:
        uniform_source.reset(token)


def current_seed() -> Tensor | None:
    """Returns the seed of the innermost `dropout_seed`, or None outside of one."""
    source = uniform_source.get()
    return source.seed if isinstance(source, _SeededSource) else None


@dataclass(frozen=True)
class _SeededSource:
    """Draws a mask's numbers from one seed, or from one seed per shard of the batch.

    The numbers are float32 in every precision. keras.random.dropout draws them in the
    dtype of its inputs, but bfloat16 has only 128 numbers from 0 to 1, so a rate of 0.1
    would become 13/128.
    """

    seed: Tensor

    def __call__(self, shape: Shape, path: str) -> Tensor:
        seed = combine_seed(self.seed, hash_path(path))
        if len(seed.shape) == 1:
            return uniform(shape, seed)
        shard = (shape[0] // seed.shape[0], *shape[1:])
        return ops.concatenate([uniform(shard, each) for each in ops.unstack(seed)])


def combine_seed(seed: Tensor, salt: int) -> Tensor:
    """Combines a seed, int32 (2,) or (shards, 2), with a number."""
    return ops.bitwise_xor(seed, ops.convert_to_tensor([0, salt], "int32"))


def hash_path(path: str) -> int:
    """Hashes a layer's path to a number from 0 to 2^31 - 1.

    A path in layer i of a stack gives the hash of ``layer_i``'s path XOR the hash of
    the same path in ``layer_0``.
    """
    layer = re.match(r"(.*/layer_)\d+(?=/)", path)
    if layer is None:
        return _hash(path)
    return _hash(layer[0]) ^ _hash(layer[1] + "0" + path[layer.end() :])


def _hash(path: str) -> int:
    return zlib.crc32(path.encode()) & 0x7FFFFFFF


class _Seed(keras.random.SeedGenerator):
    """Seed generator for ``keras.random`` that returns a given seed."""

    def __init__(self, seed: Tensor) -> None:
        self._seed = seed

    def next(self, ordered: bool = True) -> Tensor:
        if keras.backend.backend() == "jax":  # JAX keys are unsigned.
            return ops.cast(self._seed, "uint32")
        return self._seed


@dispatched
def uniform(shape: Shape, seed: Tensor) -> Tensor:
    """Draws float32 numbers in [0, 1) from a seed, int32 (2,)."""
    return keras.random.uniform(shape, dtype="float32", seed=_Seed(seed))
