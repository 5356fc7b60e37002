"""int8 quantization of a model's matmuls, on a CPU (see `int8_matmul`).

``x W`` is computed as ``(a Q - zero * sum(Q)) * step * scale``, where a are the rows in
uint8, ``x = (a - zero) * step``, and Q is the matrix in int8, each column with its own
scale. The zero point and ``step`` come from the range of x: constants found once on
real text (`RangeObserver`), so that a row's product depends only on the row. The sums
are integers and exact.

Between the two matmuls of a feed-forward network with ReLU, values stay in uint8, in
the range of the second matmul.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple, Self

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from t2t_repro.fast.flat_attention import flatten_tokens, unflatten_tokens
from t2t_repro.fast.int8_matmul import INT8_MAX, UINT8_MAX, int8_matmul
from t2t_repro.fast.normalization import normalize_in_float64
from t2t_repro.fast.small_batch_matmul import SharedMatmul
from t2t_repro.layers.add_and_norm import LayerNormalization
from t2t_repro.layers.dense import Dense
from t2t_repro.layers.embedding import TokenEmbedding
from t2t_repro.layers.feed_forward import FeedForward
from t2t_repro.models.transformer import Transformer
from t2t_repro.models.variables import named_variables

Array = npt.NDArray[np.float32]


class ActivationRange(NamedTuple):
    """Range of a matmul's input activations; values outside are clipped."""

    low: float
    high: float


def matmul_groups(model: Transformer) -> dict[str, tuple[Dense | TokenEmbedding, ...]]:
    """Returns the layers of all large matmuls of a built model.

    Layers that the same rows are multiplied by are a group. Its name is the path of its
    first matrix in the model.
    """
    groups: list[tuple[Dense | TokenEmbedding, ...]] = []
    for stack in (model.encoder, model.decoder):
        for layer in stack.layers_in_order():
            attention, network = layer.self_attention, layer.feed_forward
            groups += [
                (attention.query, attention.key, attention.value),
                (attention.output_projection,),
                (network.hidden,),
                (network.output_projection,),
            ]
            if stack is model.decoder:
                cross = layer.cross_attention
                groups += [
                    (cross.query,),
                    (cross.key, cross.value),
                    (cross.output_projection,),
                ]
    groups.append((model.softmax_table,))
    prefix = f"{model.name}/"
    return {_matrix_of(group[0]).path.removeprefix(prefix): group for group in groups}


def _matrix_of(layer: Dense | TokenEmbedding) -> keras.Variable:
    return layer.table if isinstance(layer, TokenEmbedding) else layer.kernel


def _weights(group: Iterable[Dense | TokenEmbedding]) -> tuple[Array, Array]:
    """Returns the weights of a group's matmul.

    Returns:
        The matrices side by side, float32 (channels, units), and the biases, float32
        (units,). A `TokenEmbedding` adds its bias itself.
    """
    matrices, biases = [], []
    for layer in group:
        is_table = isinstance(layer, TokenEmbedding)
        matrix = np.asarray(_matrix_of(layer), np.float32)
        matrices.append(matrix.T if is_table else matrix)
        bias = None if is_table else layer.bias
        biases.append(np.zeros(len(matrices[-1].T)) if bias is None else bias)
    return np.concatenate(matrices, 1), np.concatenate(biases).astype(np.float32)


def _share_matmul(
    group: Sequence[Dense | TokenEmbedding], whole: Callable[[tf.Tensor], tf.Tensor]
) -> None:
    """Lets each layer of a group compute its columns of one matmul."""
    start = 0
    for layer in group:
        end = start + _matrix_of(layer).shape[1]
        columns = slice(start, end) if len(group) > 1 else None
        layer.matmul, start = SharedMatmul(whole, columns), end


class QuantizedMatmul:
    """A matrix in int8, and the matmul with it.

    Args:
        matrix: float32 (channels, units).
        bias: float32 (units,), added to the product.
        bounds: range of the rows; None: nothing is multiplied by the matrix.

    Attributes:
        codes: qint8 (units, channels), the matrix column by column.
        high: the largest value of the rows.
    """

    def __init__(
        self,
        matrix: Array,
        bias: Array | float = 0.0,
        bounds: ActivationRange | None = None,
    ) -> None:
        most = np.abs(matrix).max(axis=0)
        self._most = np.where(most == 0, 1, most).astype(np.float32)
        self._scale = self._most / INT8_MAX
        codes = np.rint(matrix / self._scale).astype(np.int8)
        self.codes = tf.Variable(
            tf.bitcast(np.ascontiguousarray(codes.T), tf.qint8),
            trainable=False,
            name="codes",
        )
        low, self.high = bounds or ActivationRange(0, 1)
        self._step = (self.high - low) / UINT8_MAX
        self._zero = round(-low / self._step)
        zero = self._zero * self._step * self._scale
        sums = codes.sum(axis=0, dtype=np.int64)
        self._bias = np.asarray(bias - zero * sums, np.float32)
        # In a function, so that several graphs of an export have one copy.
        self._columns = tf.function(self._of_columns, autograph=False)

    def __call__(self, x: tf.Tensor, high: float | None = None) -> tf.Tensor:
        """Multiplies rows.

        Args:
            x: float32 (rows, channels); or quint8, from a call with `high`.
            high: the value that the largest uint8 of a rectified product stands for;
                larger values are clipped. None: the product is not rectified.

        Returns:
            The product, float32 (rows, units); rectified, quint8 (rows, units).
        """
        if x.dtype != tf.quint8:
            x, _, _ = tf.raw_ops.QuantizeV2(
                input=x,
                min_range=-self._zero * self._step,
                max_range=(UINT8_MAX - self._zero) * self._step,
                T=tf.quint8,
                mode="MIN_COMBINED",
                round_mode="HALF_AWAY_FROM_ZERO",
            )
        bias, most = self._columns()
        most_row = UINT8_MAX * self._step
        return int8_matmul(x, self.codes.value(), bias, most_row, most, high)

    def _of_columns(self) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns bias and largest weight of each, float32 (units,)."""
        return tf.constant(self._bias), tf.constant(self._most)

    def lookup(self, table: object, ids: tf.Tensor) -> tf.Tensor:
        """Returns columns of the matrix, for int32 (...): float32 (..., channels).

        It replaces `TokenEmbedding.lookup`, whose table is not read.
        """
        codes = tf.bitcast(tf.gather(self.codes.value(), ids), tf.int8)
        return tf.cast(codes, tf.float32) * tf.gather(self._scale, ids)[..., None]


@dataclass(frozen=True)
class QuantizedFeedForward:
    """A feed-forward network whose hidden values are uint8, never float32."""

    hidden: QuantizedMatmul
    output: QuantizedMatmul

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        """Applies the network to float32 (..., d_model)."""
        codes = self.hidden(flatten_tokens(x), self.output.high)
        return unflatten_tokens(x, self.output(codes))


def quantize_model(model: Transformer, bounds: Mapping[str, ActivationRange]) -> None:
    """Lets the layers of a built model compute their matmuls in int8.

    Embedding tables are kept in int8, too. Graphs that were traced before stay as they
    are.

    Args:
        model: its weights are taken as they are now.
        bounds: the range of each of its `matmul_groups`, by name.
    """
    matmuls: dict[keras.layers.Layer, QuantizedMatmul] = {}
    for name, group in matmul_groups(model).items():
        matmul = QuantizedMatmul(*_weights(group), bounds[name])
        _share_matmul(group, matmul)
        matmuls |= dict.fromkeys(group, matmul)
    for layer in model._flatten_layers():
        if isinstance(layer, LayerNormalization):
            layer.normalize = normalize_in_float64
        elif isinstance(layer, TokenEmbedding):
            if layer not in matmuls:
                matmuls[layer] = QuantizedMatmul(np.asarray(layer.table, np.float32).T)
                layer.matmul = SharedMatmul(matmuls[layer])
            layer.lookup = matmuls[layer].lookup
        elif isinstance(layer, FeedForward) and layer.activation == "relu":
            layer.quantized = QuantizedFeedForward(
                matmuls[layer.hidden], matmuls[layer.output_projection]
            )


def is_quantized(model: Transformer) -> bool:
    """Whether a model's matmuls are computed in int8."""
    return _quantized_matmul(model.softmax_table) is not None


def graph_variables(model: Transformer) -> tuple[list[tf.Variable], list[tf.Variable]]:
    """Returns the variables that the graphs of a model read.

    Returns:
        The weights that are not replaced by int8 matrices, and these matrices.
    """
    replaced: set[str] = set()
    matmuls: dict[QuantizedMatmul, None] = {}
    for layer in model._flatten_layers():
        if matmul := _quantized_matmul(layer):
            matmuls[matmul] = None
            # A quantized matmul adds the bias of a `Dense` itself.
            weights = layer.weights if isinstance(layer, Dense) else [layer.table]
            replaced |= {weight.path for weight in weights}
    read = [v.value for v in named_variables(model).values() if v.path not in replaced]
    return read, [matmul.codes for matmul in matmuls]


def _quantized_matmul(layer: keras.layers.Layer) -> QuantizedMatmul | None:
    whole = getattr(getattr(layer, "matmul", None), "whole", None)
    return whole if isinstance(whole, QuantizedMatmul) else None


class RangeObserver:
    """Observes the range of each matmul's rows, position by position, in a context.

    Args:
        model: already built; in the context its matmuls are observed.
    """

    def __init__(self, model: Transformer) -> None:
        self._model = model
        self._groups = matmul_groups(model)
        self._seen: dict[str, list[Array]] = {name: [] for name in self._groups}

    def __enter__(self) -> Self:
        """Replaces the matmuls by ones that are observed, in float32."""
        for name, group in self._groups.items():
            _share_matmul(group, self._observed(name))
        for norm in _norms(self._model):
            norm.normalize = normalize_in_float64
        return self

    def __exit__(self, *_: object) -> None:
        """Gives the layers their own matmuls again."""
        for layer in chain.from_iterable(self._groups.values()):
            del layer.matmul
        for norm in _norms(self._model):
            del norm.normalize

    def bounds(self, share: float) -> dict[str, ActivationRange]:
        """Returns the ranges that hold all values of this share of the positions.

        Zero is within each. A matmul that was not computed has the range 0 to 1.
        """
        found = {}
        for name, seen in self._seen.items():
            lows, highs = np.concatenate(seen, axis=1) if seen else np.zeros((2, 1))
            low = min(0.0, float(np.quantile(lows, 1 - share, method="lower")))
            high = max(0.0, float(np.quantile(highs, share, method="higher")))
            found[name] = ActivationRange(low, high if high > low else low + 1.0)
        return found

    def _observed(self, name: str) -> Callable[[tf.Tensor], tf.Tensor]:
        matrix, bias = _weights(self._groups[name])
        seen = self._seen[name]

        def note(lows: Array, highs: Array) -> None:
            seen.append(np.stack([lows, highs]))

        def product(x: tf.Tensor) -> tf.Tensor:
            ends = [tf.reduce_min(x, axis=1), tf.reduce_max(x, axis=1)]
            with tf.control_dependencies([tf.numpy_function(note, ends, [])]):
                return tf.matmul(x, matrix) + bias

        return product


def _norms(model: Transformer) -> list[LayerNormalization]:
    return [x for x in model._flatten_layers() if isinstance(x, LayerNormalization)]
