"""The product of whole numbers of 8 bits, on a CPU that has instructions for it.

It is the operation into which TensorFlow's optimizer joins such products for oneDNN.
The public ones know one scale for a whole matrix, and keep the layout that oneDNN gives
a matrix only where it is a constant of the graph, of which TensorFlow makes many
copies; to lay it out anew takes longer than the product of a few rows.
"""

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
import tensorflow as tf

INT8_MAX = 127  # Of the signed range; -128 has no opposite.
UINT8_MAX = 255

_Attribute: TypeAlias = tf.compat.v1.AttrValue


def int8_matmul(
    rows: tf.Tensor,
    codes: tf.Tensor,
    bias: tf.Tensor,
    most_row: float,
    most_weights: tf.Tensor,
    most: float | None = None,
) -> tf.Tensor:
    """Multiplies whole numbers that stand for others, in a graph.

    The sums are exact where `unsupported_reason` has nothing to say.

    Args:
        rows: quint8 (rows, channels).
        codes: qint8 (units, channels), the same at every call of the graph.
        bias: float32 (units,), added.
        most_row: what UINT8_MAX stands for.
        most_weights: float32 (units,), what INT8_MAX stands for in each column.
        most: what MOST_ROW stands for in a rectified result; None: it is not rectified.

    Returns:
        float32 (rows, units), or, rectified, quint8: what is more than `most` is cut.
    """
    numbers = [bias, 0.0, most_row, -most_weights, most_weights]
    steps, outputs = [b"BiasAdd", b"Dequantize"], [tf.float32]
    if most is not None:
        numbers += [0.0, most]
        steps = [b"BiasAdd", b"Relu", b"Requantize"]
        outputs = [tf.quint8, tf.float32, tf.float32]  # The latter two are its bounds.
    # The operation does not look whether they are of the types that it takes.
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
    """Says why this machine cannot compute products in 8 bits; None: it can.

    The largest sums are tried: instructions older than VNNI add pairs of products up in
    16 bits and cut what is larger.
    """
    if tf.config.list_physical_devices("GPU"):
        return "TensorFlow has no 8-bit products for a GPU"
    try:
        exact = bool(tf.function(is_exact, autograph=False)())
    except (tf.errors.OpError, ValueError):
        return "this TensorFlow has no 8-bit products (oneDNN's, on x86-64)"
    return None if exact else "this processor has no instructions for it (VNNI)"


def is_exact() -> tf.Tensor:
    """Tries the largest sums of 8-bit products, in a graph: bool ()."""
    channels, units = 64, 16
    codes = tf.bitcast(tf.fill([units, channels], np.int8(INT8_MAX)), tf.qint8)
    rows = tf.bitcast(tf.fill([2, channels], np.uint8(UINT8_MAX)), tf.quint8)
    bias, most = tf.zeros([units]), tf.fill([units], float(INT8_MAX))
    sums = int8_matmul(rows, codes, bias, UINT8_MAX, most)
    return tf.reduce_all(tf.equal(sums, float(channels * UINT8_MAX * INT8_MAX)))


def _types(dtypes: Iterable[tf.DType]) -> _Attribute:
    types = [dtype.as_datatype_enum for dtype in dtypes]
    return _Attribute(list=_Attribute.ListValue(type=types))
