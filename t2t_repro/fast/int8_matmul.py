"""int8 matmuls of oneDNN, on CPUs with VNNI.

`_QuantizedMatMul` is an internal operation, which TensorFlow's optimizer uses for fused
int8 matmuls. The public operations support only one scale per matrix, and convert the
matrix to oneDNN's layout at every call, which takes longer than a matmul of a few rows.
They cache the converted matrix only if it is a constant, and TensorFlow makes many
copies of constants.
"""

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
import tensorflow as tf

INT8_MAX = 127  # The range is symmetric: -128 is not used.
UINT8_MAX = 255

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

    The sums are exact if `unsupported_reason` returns None.

    Args:
        rows: quint8 (rows, channels).
        codes: qint8 (units, channels), with the same values at every call of the graph.
        bias: float32 (units,), added to the product.
        row_max: Value that UINT8_MAX represents in the rows.
        weight_max: float32 (units,), value that INT8_MAX represents in each column.
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


def unsupported_reason() -> str | None:
    """Returns the reason why this machine cannot compute int8 matmuls, or None.

    It tests the largest possible sums: instructions older than VNNI add pairs of
    products in 16 bits, which saturates.
    """
    if tf.config.list_physical_devices("GPU"):
        return "TensorFlow has no int8 matmuls for GPUs"
    try:
        exact = bool(tf.function(is_exact, autograph=False)())
    except (tf.errors.OpError, ValueError):
        return "this TensorFlow has no int8 matmuls; oneDNN on x86-64 has them"
    return None if exact else "this processor has no instructions for int8 (VNNI)"


def is_exact() -> tf.Tensor:
    """Computes in a graph whether the largest possible sums are exact: bool ()."""
    channels, units = 64, 16
    codes = tf.bitcast(tf.fill([units, channels], np.int8(INT8_MAX)), tf.qint8)
    rows = tf.bitcast(tf.fill([2, channels], np.uint8(UINT8_MAX)), tf.quint8)
    bias, weight_max = tf.zeros([units]), tf.fill([units], float(INT8_MAX))
    sums = int8_matmul(rows, codes, bias, UINT8_MAX, weight_max)
    return tf.reduce_all(tf.equal(sums, float(channels * UINT8_MAX * INT8_MAX)))


def _types(dtypes: Iterable[tf.DType]) -> _Attribute:
    types = [dtype.as_datatype_enum for dtype in dtypes]
    return _Attribute(list=_Attribute.ListValue(type=types))
