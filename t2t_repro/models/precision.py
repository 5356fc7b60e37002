"""Precision of a model's weights and computation."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import keras

from t2t_repro.system.errors import UserError
from t2t_repro.system.processor import avx512_is_excluded, supports_onednn_matmuls

PRECISIONS = ("float32", "bfloat16")
"""Precisions for translation. bfloat16 rounds the weights to 8 significant bits, which
halves their size; softmax, normalization and scores are computed in float32."""


@contextmanager
def precision(name: str) -> Iterator[None]:
    """Sets the precision of models that are built in this context.

    Args:
        name: A value of `PRECISIONS`, with or without the prefix "mixed_".

    Raises:
        UserError: See `check_precision`.
    """
    check_precision(name.removeprefix("mixed_"))
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(name)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


def mixed_precision(name: str) -> AbstractContextManager[None]:
    """Sets the precision in which models built in this context are trained.

    Weights, softmax, normalization and loss stay in float32; matmuls and other
    operations use the given precision (Micikevicius et al. 2018, arXiv:1710.03740).

    Args:
        name: "float32", "bfloat16" or "float16".
    """
    return precision(name if name == "float32" else f"mixed_{name}")


def check_precision(name: str) -> None:
    """Raises UserError if TensorFlow's matmuls would crash in a precision."""
    if reason := unsupported_reason(name):
        raise UserError(reason)


def unsupported_reason(name: str) -> str | None:
    """Returns why TensorFlow's matmuls would crash in a precision; None if they work.

    TensorFlow passes 16-bit matmuls to oneDNN if the processor has the instructions,
    even if ONEDNN_MAX_CPU_ISA excludes them. If it excludes AVX-512, oneDNN raises an
    exception that ends the process.

    Args:
        name: "float32", "bfloat16" or "float16".
    """
    if not avx512_is_excluded():
        return None
    if name == "float32" or os.environ.get("TF_ENABLE_ONEDNN_OPTS") == "0":
        return None
    import tensorflow as tf

    if tf.config.list_physical_devices("GPU") or not supports_onednn_matmuls(name):
        return None
    limit = os.environ["ONEDNN_MAX_CPU_ISA"].upper()
    return (
        f"TensorFlow cannot multiply in {name} under ONEDNN_MAX_CPU_ISA={limit}: unset "
        "it, set it to AVX512_CORE or later, or set TF_ENABLE_ONEDNN_OPTS=0"
    )
