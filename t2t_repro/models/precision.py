"""Models whose weights or computation have another precision than float32."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

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


def mixed_precision(name: str) -> AbstractContextManager[None]:
    """Lets models that are built in this context be trained in a precision.

    The weights stay in float32, and so do softmax, normalisation and loss; products
    and what lies between them are computed in the precision (Micikevicius et al.
    2018, arXiv:1710.03740).

    Args:
        name: float32, bfloat16 or float16.
    """
    return precision(name if name == "float32" else f"mixed_{name}")
