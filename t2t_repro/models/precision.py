"""Models whose weights or computation have another precision than float32."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import keras

from t2t_repro.system.errors import UserError

PRECISIONS = ("float32", "bfloat16")
"""What a model can translate in. In bfloat16 the weights are rounded to 8 bits, which
halves them; softmax, normalisation and scores are computed in float32 in either."""


@contextmanager
def precision(name: str) -> Iterator[None]:
    """Lets models that are built in this context have a precision.

    Args:
        name: one of `PRECISIONS`.

    Raises:
        UserError: as `check_precision`.
    """
    check_precision(name.removeprefix("mixed_"))
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


def check_precision(name: str) -> None:
    """Raises UserError if matmuls of a precision would crash."""
    if reason := unsupported_reason(name):
        raise UserError(reason)


def unsupported_reason(name: str) -> str | None:
    """Returns why TensorFlow would crash in matmuls of a precision; None if it works.

    TensorFlow passes a CPU's 16-bit matmuls to oneDNN if the processor has the
    instructions, without regard to ONEDNN_MAX_CPU_ISA. If that variable excludes
    AVX-512, oneDNN raises an exception that ends the process.

    Args:
        name: float32, bfloat16 or float16.
    """
    limit = os.environ.get("ONEDNN_MAX_CPU_ISA", "").upper()
    if limit != "AVX" and not limit.startswith(("SSE", "AVX2")):
        return None
    if name == "float32" or os.environ.get("TF_ENABLE_ONEDNN_OPTS") == "0":
        return None
    import tensorflow as tf
    from tensorflow.python.util import _pywrap_utils

    if tf.config.list_physical_devices("GPU"):
        return None
    # TensorFlow's own condition.
    if not _pywrap_utils.IsDataTypeSupportedByOneDNNOnThisCPU(tf.as_dtype(name)):
        return None
    return (
        f"TensorFlow cannot multiply in {name} under ONEDNN_MAX_CPU_ISA={limit}: unset "
        "it, set it to AVX512_CORE or later, or set TF_ENABLE_ONEDNN_OPTS=0"
    )
