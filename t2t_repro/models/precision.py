"""Models whose weights and computation have another precision than in training."""

from collections.abc import Iterator
from contextlib import contextmanager

import keras

PRECISIONS = ("float32", "bfloat16")
"""What a model can translate in. In bfloat16 the weights are rounded to 8 bits, which
halves them; softmax, normalisation and scores are computed in float32 in either."""


@contextmanager
def precision(name: str) -> Iterator[None]:
    """Lets models that are built in this context have a precision.

    Args:
        name: one of `PRECISIONS`.
    """
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(name)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)
