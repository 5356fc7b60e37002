"""int8 matmuls of oneDNN, on x86-64 CPUs.

`_QuantizedMatMul` is an internal operation, which TensorFlow's optimizer uses for fused
int8 matmuls. The public operations support only one scale per matrix, and convert the
matrix to oneDNN's layout at every call, which takes longer than a matmul of a few rows.
They cache the converted matrix only if it is a constant, and TensorFlow makes many
copies of constants.

The sums are 32-bit integers. Processors without VNNI first add two products in 16 bits
(`vpmaddubsw`), which saturates with 8-bit weights: 2 * 255 * 127 = 64,770. The sum of
two products with 7-bit weights is at most 2 * 255 * 64 = 32,640 < 2^15.
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import TypeAlias

import numpy as np
import tensorflow as tf

INT8_MAX = 127  # The range is symmetric: -128 is not used.
UINT8_MAX = 255
LARGEST_CODES = {8: INT8_MAX, 7: 64}
"""Largest code of a weight, by the number of bits of the weights."""

_Attribute: TypeAlias = tf.compat.v1.AttrValue


def int8_matmul(
    rows: tf.Tensor,
    codes: tf.Tensor,
    bias: tf.Tensor,
    row_max: float,
    weight_max: tf.Tensor,
    output_max: float | None = None,
) -> tf.Tensor:
    """Multiplies quantized rows by a quantized matrix; works only in a graph.

    The sums are exact if the codes have at most `exact_weight_bits` bits.

    Args:
        rows: quint8 (rows, channels).
        codes: qint8 (units, channels), with the same values at every call of the graph.
        bias: float32 (units,), added to the product.
        row_max: Value that UINT8_MAX represents in the rows.
        weight_max: float32 (units,), value that INT8_MAX represents in each column,
            also with 7-bit codes.
        output_max: If given, ReLU is applied and the result is quantized: UINT8_MAX
            represents this value, and larger values are clipped. None: no ReLU.

    Returns:
        float32 (rows, units); with `output_max` quint8 (rows, units).
    """
    numbers = [bias, 0.0, row_max, -weight_max, weight_max]
    steps, outputs = [b"BiasAdd", b"Dequantize"], [tf.float32]
    if output_max is not None:
        numbers += [0.0, output_max]
        steps = [b"BiasAdd", b"Relu", b"Requantize"]
        outputs = [tf.quint8, tf.float32, tf.float32]  # The result, its min and max.
    # The operation does not check the dtypes of its inputs.
    tensors = [rows, codes]
    tensors += [tf.convert_to_tensor(each, tf.float32) for each in numbers]
    operation = tf.compat.v1.get_default_graph().create_op(
        "_QuantizedMatMul",
        tensors,
        outputs,
        name="product",
        attrs={
            "Tdevice_inputs": _types(each.dtype for each in tensors),
            "Thost_inputs": _types([]),
            "Tdevice_outputs": _types(outputs),
            "Thost_outputs": _types([]),
            "T1": _Attribute(type=tf.quint8.as_datatype_enum),
            "T2": _Attribute(type=tf.qint8.as_datatype_enum),
            "Tout": _Attribute(type=outputs[0].as_datatype_enum),
            "transpose_b": _Attribute(b=True),
            "fused_ops": _Attribute(list=_Attribute.ListValue(s=steps)),
        },
    )
    return tf.ensure_shape(operation.outputs[0], [None, bias.shape[0]])


def unsupported_reason(computes: bool = True) -> str | None:
    """Returns the reason why this machine cannot use int8 matmuls, or None.

    Args:
        computes: Whether this machine also computes the matmuls, instead of only
            exporting their graph.
    """
    if computes and tf.config.list_physical_devices("GPU"):
        return "TensorFlow has no int8 matmuls for GPUs"
    with suppress(tf.errors.OpError, ValueError):
        graph = tf.function(is_exact, autograph=False).get_concrete_function(7)
        if not computes or graph():
            return None
    return "this TensorFlow has no int8 matmuls; oneDNN on x86-64 has them"


def exact_weight_bits() -> int:
    """Returns the largest number of bits of weights that this machine sums exactly.

    It tests the largest possible sums with 8 and 7 bits.

    Raises:
        ValueError: Neither is exact; see `unsupported_reason`.
    """
    for bits in LARGEST_CODES:
        if tf.function(is_exact, autograph=False)(bits):
            return bits
    raise ValueError("this machine cannot compute exact int8 matmuls")


def is_exact(weight_bits: int) -> tf.Tensor:
    """Computes in a graph whether the largest possible sums are exact: bool ()."""
    channels, units, code = 64, 16, LARGEST_CODES[weight_bits]
    codes = tf.bitcast(tf.fill([units, channels], np.int8(code)), tf.qint8)
    rows = tf.bitcast(tf.fill([2, channels], np.uint8(UINT8_MAX)), tf.quint8)
    bias, weight_max = tf.zeros([units]), tf.fill([units], float(INT8_MAX))
    sums = int8_matmul(rows, codes, bias, UINT8_MAX, weight_max)
    return tf.reduce_all(tf.equal(sums, float(channels * UINT8_MAX * code)))


def _types(dtypes: Iterable[tf.DType]) -> _Attribute:
    types = [dtype.as_datatype_enum for dtype in dtypes]
    return _Attribute(list=_Attribute.ListValue(type=types))
