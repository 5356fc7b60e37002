"""Instruction sets of the processor that TensorFlow's matmuls use."""

import os


def uses_avx512() -> bool:
    """Returns whether oneDNN's matmuls use AVX-512 in this process."""
    # oneDNN multiplies in bfloat16 on processors with AVX-512.
    return supports_onednn_matmuls("bfloat16") and not avx512_is_excluded()


def has_amx() -> bool:
    """Returns whether the processor is an Intel Xeon with AMX (2023 or later).

    TensorFlow does not report AMX. Among the processors with AVX-512 in docs/speed.md,
    only these multiply in float16.
    """
    return supports_onednn_matmuls("float16")


def avx512_is_excluded() -> bool:
    """Returns whether ONEDNN_MAX_CPU_ISA excludes AVX-512 from oneDNN's matmuls."""
    limit = os.environ.get("ONEDNN_MAX_CPU_ISA", "").upper()
    return limit == "AVX" or limit.startswith(("SSE", "AVX2"))


def supports_onednn_matmuls(name: str) -> bool:
    """Returns whether TensorFlow passes matmuls in a 16-bit precision to oneDNN.

    Args:
        name: "bfloat16" or "float16".
    """
    import tensorflow as tf
    from tensorflow.python.util import _pywrap_utils

    dtype = tf.as_dtype(name)
    return bool(_pywrap_utils.IsDataTypeSupportedByOneDNNOnThisCPU(dtype))
