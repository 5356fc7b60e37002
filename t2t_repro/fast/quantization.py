"""int8 quantization of a model's matmuls, on a CPU (see `int8_matmul`).

``x W`` is computed as ``(a Q - zero * sum(Q)) * step * scale``: a are the rows in
uint8, ``x = (a - zero) * step``, and Q is the matrix with one scale per column, in int8
or, on processors without VNNI, in 7 bits. The zero point and ``step`` follow from the
activation range of x, which `RangeObserver` measures once on real text, so the result
of a row depends only on the row. The sums are integers and exact.

Between the two matmuls of a feed-forward network with ReLU, activations stay in uint8,
in the activation range of the second matmul.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from t2t_repro.fast import xla_kernels
from t2t_repro.fast.flat_attention import flatten_tokens, unflatten_tokens
from t2t_repro.fast.int8_matmul import (
    INT8_MAX,
    LARGEST_CODES,
    UINT8_MAX,
    exact_weight_bits,
    int8_matmul,
)
from t2t_repro.fast.normalization import normalize_in_float64
from t2t_repro.fast.small_batch_matmul import SharedMatmul
from t2t_repro.layers.add_and_norm import LayerNormalization
from t2t_repro.layers.dense import Dense
from t2t_repro.layers.embedding import TokenEmbedding
from t2t_repro.layers.feed_forward import FeedForward
from t2t_repro.layers.stacks import DecoderLayer, EncoderLayer
from t2t_repro.models.transformer import Transformer

Array = npt.NDArray[np.float32]
MatmulGroup: TypeAlias = tuple[Dense | TokenEmbedding, ...]
"""Layers with the same input, which share a matmul."""


class ActivationRange(NamedTuple):
    """Range of a matmul's input activations; values outside of it are clipped."""

    low: float
    high: float


def layer_matmuls(layer: EncoderLayer | DecoderLayer) -> list[MatmulGroup]:
    """Returns the layers of each matmul that an encoder or decoder layer computes.

    Cross-attention's keys and values are not included, because they are computed once
    per sentence.
    """
    attention, network = layer.self_attention, layer.feed_forward
    groups: list[MatmulGroup] = [
        (attention.query, attention.key, attention.value),
        (attention.output_projection,),
        (network.hidden,),
        (network.output_projection,),
    ]
    if isinstance(layer, DecoderLayer):
        cross = layer.cross_attention
        groups += [(cross.query,), (cross.output_projection,)]
    return groups


def matmul_groups(model: Transformer) -> dict[str, MatmulGroup]:
    """Returns the layers of each large matmul of a built model.

    The name of a matmul is the path, in the model, of its first layer's matrix.
    """
    groups: list[MatmulGroup] = []
    for layer in (*model.encoder.layers_in_order(), *model.decoder.layers_in_order()):
        groups += layer_matmuls(layer)
        if isinstance(layer, DecoderLayer):
            groups.append((layer.cross_attention.key, layer.cross_attention.value))
    groups.append((model.softmax_table,))
    prefix = f"{model.name}/"
    return {
        _select_matrix(group[0]).path.removeprefix(prefix): group for group in groups
    }


def _select_matrix(layer: Dense | TokenEmbedding) -> keras.Variable:
    return layer.table if isinstance(layer, TokenEmbedding) else layer.kernel


def group_weights(group: MatmulGroup) -> tuple[Array, Array]:
    """Returns the weights of a group's matmul.

    Returns:
        The concatenated matrices, float32 (channels, units), and biases, float32
        (units,). The bias of a `TokenEmbedding`, which adds it itself, is 0. A single
        matrix is not copied.
    """
    matrices, biases = [], []
    for layer in group:
        is_table = isinstance(layer, TokenEmbedding)
        matrix = np.asarray(tf.convert_to_tensor(_select_matrix(layer)), np.float32)
        matrices.append(matrix.T if is_table else matrix)
        bias = None if is_table else layer.bias
        biases.append(np.zeros(len(matrices[-1].T)) if bias is None else bias)
    whole = matrices[0] if len(matrices) == 1 else np.concatenate(matrices, 1)
    return whole, np.concatenate(biases).astype(np.float32)


def share_matmul(group: MatmulGroup, whole: Callable[..., tf.Tensor]) -> None:
    """Replaces the matmul of each layer of a group with its columns of `whole`."""
    start = 0
    for layer in group:
        end = start + _select_matrix(layer).shape[1]
        columns = slice(start, end) if len(group) > 1 else None
        layer.matmul, start = SharedMatmul(whole, columns), end


class QuantizedMatmul:
    """Matmul with an int8 matrix.

    Args:
        matrix: float32 (channels, units).
        bias: float32 (units,), added to the product.
        bounds: Activation range of the rows; None if only `lookup` is used.
        weight_bits: Number of bits of the quantized matrix, a key of `LARGEST_CODES`.

    Attributes:
        codes: qint8 (units, channels), the transposed quantized matrix.
        weight_bits: Number of bits of `codes`.
        high: Upper end of the activation range.
    """

    def __init__(
        self,
        matrix: Array,
        bias: Array | float = 0.0,
        bounds: ActivationRange | None = None,
        weight_bits: int = 8,
    ) -> None:
        self.weight_bits = weight_bits
        largest = np.maximum(matrix.max(axis=0), -matrix.min(axis=0))
        largest *= INT8_MAX / LARGEST_CODES[weight_bits]
        self._max = np.where(largest == 0, 1, largest).astype(np.float32)
        self._scale = self._max / INT8_MAX
        codes = np.empty(matrix.shape[::-1], np.int8)
        for row, column, scale in zip(codes, matrix.T, self._scale, strict=True):
            np.rint(column / scale, out=row, casting="unsafe")
        self.codes = tf.Variable(
            tf.bitcast(codes, tf.qint8), trainable=False, name="codes"
        )
        low, self.high = bounds or ActivationRange(0, 1)
        self._step = (self.high - low) / UINT8_MAX
        self._zero = round(-low / self._step)
        # The range that the uint8 values represent.
        ends = (-self._zero, UINT8_MAX - self._zero)
        self._row_range = [end * self._step for end in ends]
        zero = self._zero * self._step * self._scale
        self._sums = codes.sum(axis=1, dtype=np.int32)
        self._bias = np.asarray(bias - zero * self._sums, np.float32)
        # A tf.function lets the graphs of an export share one copy of both tensors.
        self._constants = tf.function(self._bias_and_max, autograph=False)

    def __call__(
        self, x: tf.Tensor, high: float | None = None, columns: slice | None = None
    ) -> tf.Tensor:
        """Multiplies rows by the matrix, or by some of its columns.

        Args:
            x: float32 (rows, channels); or the result of a call with `high`.
            high: If given, ReLU is applied and the result is quantized: the largest
                uint8 represents this value, and larger values are clipped. None:
                float32, no ReLU.
            columns: Columns to compute; None: all of them.

        Returns:
            float32 (rows, units); with `high` quint8 (rows, units), or under XLA int8
            as from `xla_kernels.quantize`.
        """
        if xla_kernels.is_xla_graph():
            y = self._multiply_in_xla(x, high)
            return y if columns is None else y[:, columns]
        if x.dtype != tf.quint8:
            x, _, _ = tf.raw_ops.QuantizeV2(
                input=x,
                min_range=self._row_range[0],
                max_range=self._row_range[1],
                T=tf.quint8,
                mode="MIN_COMBINED",
                round_mode="HALF_AWAY_FROM_ZERO",
            )
        codes, (bias, weight_max) = self.codes.value(), self._constants()
        if columns is not None:
            codes, bias, weight_max = codes[columns], bias[columns], weight_max[columns]
        row_max = UINT8_MAX * self._step
        return int8_matmul(x, codes, bias, row_max, weight_max, high)

    def _multiply_in_xla(self, x: tf.Tensor, high: float | None) -> tf.Tensor:
        """Implements `__call__` with XLA's matmul."""
        if x.dtype == tf.float32:
            x = xla_kernels.quantize(x, *self._row_range)
        sums = xla_kernels.int8_matmul(x, self.codes.value(), self._sums)
        scale = np.float32(self._step) * self._scale
        y = tf.cast(sums, tf.float32) * scale + self._bias
        return y if high is None else xla_kernels.quantize(y, 0.0, high)

    def _bias_and_max(self) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the bias and the value of INT8_MAX: float32 (units,) each."""
        return tf.constant(self._bias), tf.constant(self._max)

    def lookup(self, table: object, ids: tf.Tensor) -> tf.Tensor:
        """Replaces `TokenEmbedding.lookup`: dequantizes columns of the int8 matrix.

        Args:
            table: The embedding table, which is not read.
            ids: int32 (...).

        Returns:
            float32 (..., channels).
        """
        codes = tf.gather(tf.bitcast(self.codes.value(), tf.int8), ids)
        return tf.cast(codes, tf.float32) * tf.gather(self._scale, ids)[..., None]


@dataclass(frozen=True)
class QuantizedFeedForward:
    """Feed-forward network with hidden activations in uint8."""

    hidden: QuantizedMatmul
    output: QuantizedMatmul

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        """Applies the network to float32 (..., d_model)."""
        codes = self.hidden(flatten_tokens(x), self.output.high)
        return unflatten_tokens(x, self.output(codes))


def quantize_model(
    model: Transformer,
    bounds: Mapping[str, ActivationRange],
    weight_bits: int | None = None,
) -> None:
    """Makes the layers of a built model compute their matmuls in int8.

    Embedding lookups also read int8 tables. The model no longer has the float weights
    that int8 matrices replace, so that their memory is released. Graphs that were
    traced before do not change.

    Args:
        model: The model; its current weights are quantized.
        bounds: Activation range of each group of `matmul_groups`, by name.
        weight_bits: Number of bits of the matrices, 8 or 7; None for the largest number
            that this machine sums exactly.
    """
    weight_bits = weight_bits or exact_weight_bits()
    matmuls: dict[keras.layers.Layer, QuantizedMatmul] = {}
    for name, group in matmul_groups(model).items():
        matmul = QuantizedMatmul(*group_weights(group), bounds[name], weight_bits)
        share_matmul(group, matmul)
        matmuls |= dict.fromkeys(group, matmul)
        for layer in group:
            _remove_weights(layer)
    for layer in model._flatten_layers():
        if isinstance(layer, LayerNormalization):
            layer.normalize = normalize_in_float64
        elif isinstance(layer, TokenEmbedding):
            if layer not in matmuls:
                matrix, _ = group_weights((layer,))
                matmuls[layer] = QuantizedMatmul(matrix, weight_bits=weight_bits)
                layer.matmul = SharedMatmul(matmuls[layer])
                _remove_weights(layer)
            layer.lookup = matmuls[layer].lookup
        elif isinstance(layer, FeedForward) and layer.activation == "relu":
            layer.quantized = QuantizedFeedForward(
                matmuls[layer.hidden], matmuls[layer.output_projection]
            )


def _remove_weights(layer: Dense | TokenEmbedding) -> None:
    """Removes the matrix of a layer, and the bias that its matmul in int8 adds."""
    names = (
        ["_embeddings"] if isinstance(layer, TokenEmbedding) else ["_kernel", "bias"]
    )
    for name in names:
        if (weights := getattr(layer, name)) is not None:
            layer._untrack_variable(weights)
            delattr(layer, name)  # TensorFlow's tracking ends only with `del`.
            setattr(layer, name, None)


def find_weight_bits(model: Transformer) -> int | None:
    """Returns the number of bits of a quantized model's weights; None in float32."""
    matmul = _find_quantized_matmul(model.softmax_table)
    return matmul.weight_bits if matmul else None


def find_codes(model: Transformer) -> list[tf.Variable]:
    """Returns the int8 matrices of a model; an empty list in float32."""
    found = map(_find_quantized_matmul, model._flatten_layers())
    return [matmul.codes for matmul in dict.fromkeys(found) if matmul]


def _find_quantized_matmul(layer: keras.layers.Layer) -> QuantizedMatmul | None:
    whole = getattr(getattr(layer, "matmul", None), "whole", None)
    return whole if isinstance(whole, QuantizedMatmul) else None
