"""The products of a model in 8 bits, on a CPU that has instructions for them.

``x W`` is computed as ``(a Q - zero * sum(Q)) * step * scale``, where a are the rows in
unsigned 8 bits, ``x = (a - zero) * step``, and Q is the matrix in signed 8 bits, each
column with a scale of its own. ``zero`` and ``step`` come of the bounds of x: constants
found once on real text (`Watch`), so that a row's product depends on the row alone.
The sums are whole numbers and exact.

The matrices are constants of the graph, for oneDNN lays them out anew at each product
with anything else, which takes longer than the product of a few rows. Each is in a
function, so that several graphs of an export have one copy.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf
from tensorflow.core.framework.tensor_pb2 import TensorProto

from t2t_repro.fast.stand_ins import Matrices, Product, matrices, stand_in, stand_in_for
from t2t_repro.layers.dense import Dense
from t2t_repro.layers.embedding import TokenEmbedding
from t2t_repro.layers.formulas import Tensor, rows_of_table
from t2t_repro.models.transformer import Transformer

Array = npt.NDArray[np.float32]

MOST_WEIGHT = 127  # Of the signed range; -128 has no opposite.
MOST_ROW = 255


class Bounds(NamedTuple):
    """Between what the values of a product's rows lie; what does not is cut."""

    low: float
    high: float


class Site(NamedTuple):
    """Matrices that the same rows are multiplied by.

    Attributes:
        name: the path of the first in the model.
        layers: those that multiply, `Dense` or one `TokenEmbedding`.
    """

    name: str
    layers: tuple[Dense | TokenEmbedding, ...]

    def variables(self) -> list[keras.Variable]:
        """Returns the matrices."""
        return [
            layer.table if isinstance(layer, TokenEmbedding) else layer.kernel
            for layer in self.layers
        ]

    def matrix(self) -> Array:
        """Returns the values side by side, float32 (channels, units)."""
        values = [np.asarray(variable, np.float32) for variable in self.variables()]
        turned = isinstance(self.layers[0], TokenEmbedding)
        return np.concatenate([each.T if turned else each for each in values], axis=1)

    def bias(self) -> Array:
        """Returns what is added, float32 (units,); the table's layer adds its own."""
        biases = [
            np.zeros(variable.shape[1 - self._turned()], np.float32)
            if self._turned() or layer.bias is None
            else np.asarray(layer.bias, np.float32)
            for layer, variable in zip(self.layers, self.variables(), strict=True)
        ]
        return np.concatenate(biases)

    def products(self, product: Product) -> Iterator[tuple[Matrices, Product]]:
        """Yields one for all, and its part for each."""
        variables = self.variables()
        yield matrices(variables), product
        if len(variables) == 1:
            return
        start = 0
        for variable in variables:
            end = start + variable.shape[1]
            yield matrices([variable]), _columns_of(product, start, end)
            start = end

    def _turned(self) -> bool:
        return isinstance(self.layers[0], TokenEmbedding)


def _columns_of(product: Product, start: int, end: int) -> Product:
    """Returns a part of a product; a graph computes the whole once for all parts."""
    return lambda x: product(x)[:, start:end]


def sites(model: Transformer) -> list[Site]:
    """Returns all large products of a built model."""
    groups: list[tuple[Dense | TokenEmbedding, ...]] = []
    for stack in (model.encoder, model.decoder):
        for layer in stack.layers_in_order():
            back, network = layer.self_attention, layer.feed_forward
            groups += [
                (back.query, back.key, back.value),
                (back.output_projection,),
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
    found = [Site("", group) for group in groups]
    prefix = f"{model.name}/"
    return [
        site._replace(name=site.variables()[0].path.removeprefix(prefix))
        for site in found
    ]


class EightBits:
    """A matrix in signed 8 bits, and the product with it.

    Args:
        matrix: float32 (channels, units).
        bias: float32 (units,), added to the product.
        bounds: of the rows; None: nothing is multiplied by it.
    """

    def __init__(
        self, matrix: Array, bias: Array | float = 0.0, bounds: Bounds | None = None
    ) -> None:
        scale = np.abs(matrix).max(axis=0) / MOST_WEIGHT
        self.scale = np.where(scale == 0, 1, scale).astype(np.float32)
        self._codes = np.rint(matrix / self.scale).astype(np.int8)
        low, high = bounds or Bounds(0, 1)
        self.step = (high - low) / MOST_ROW
        self.zero = round(-low / self.step)
        self._columns = (self.scale * self.step).astype(np.float32)
        sums = self._codes.sum(axis=0, dtype=np.int64)
        self._offset = (bias / self._columns - self.zero * sums).astype(np.float32)
        self._constants = tf.function(self._made, autograph=False)

    def _made(self) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        codes = TensorProto(
            dtype=tf.qint8.as_datatype_enum,
            tensor_shape=tf.TensorShape(self._codes.shape).as_proto(),
            tensor_content=self._codes.tobytes(),
        )
        return tf.constant(codes), tf.constant(self._offset), tf.constant(self._columns)

    def product(self, x: tf.Tensor) -> tf.Tensor:
        """Multiplies float32 (rows, channels): float32 (rows, units)."""
        codes, offset, columns = self._constants()
        rows, _, _ = tf.raw_ops.QuantizeV2(
            input=x,
            min_range=-self.zero * self.step,
            max_range=(MOST_ROW - self.zero) * self.step,
            T=tf.quint8,
            mode="MIN_COMBINED",
            round_mode="HALF_AWAY_FROM_ZERO",
        )
        return _sums(rows, codes, offset) * columns

    def rows(self, ids: tf.Tensor) -> tf.Tensor:
        """Returns columns of the matrix, for int32 (...): float32 (..., channels)."""
        codes, _, _ = self._constants()
        flat = tf.reshape(ids, [-1])
        # (channels, V) -> (channels, ids)
        found = tf.cast(tf.bitcast(tf.gather(codes, flat, axis=1), tf.int8), tf.float32)
        found = tf.transpose(found) * tf.gather(self.scale, flat)[:, None]
        shape = tf.concat([tf.shape(ids), [self._codes.shape[0]]], axis=0)
        found = tf.reshape(found, shape)
        return tf.ensure_shape(found, [*ids.shape, self._codes.shape[0]])


def compute_in_eight_bits(model: Transformer, bounds: Mapping[str, Bounds]) -> None:
    """Computes the products of a built model in 8 bits from now on.

    Tables of symbols are kept in 8 bits, too. What was traced before stays as it is.

    Args:
        model: its weights are taken as they are now.
        bounds: by the name of each of its `sites`.
    """
    products: dict[Matrices, Product] = {}
    for site in sites(model):
        quantised = EightBits(site.matrix(), site.bias(), bounds[site.name])
        products.update(site.products(quantised.product))
        if site.layers[0] is model.softmax_table:
            products[_rows_key(model.softmax_table.table)] = quantised.rows
    for layer in model.layers:
        if isinstance(layer, TokenEmbedding) and layer is not model.softmax_table:
            table = np.asarray(layer.table, np.float32).T
            products[_rows_key(layer.table)] = EightBits(table).rows
    stand_in(model, products)


def is_in_eight_bits(model: Transformer) -> bool:
    """Whether a model's products are computed in 8 bits."""
    return stand_in_for(model.softmax_table.table) is not None


def look_up(table: keras.Variable, ids: Tensor) -> Tensor:
    """Stands in for `formulas.rows_of_table`."""
    kept = stand_in_for(table, table)
    return rows_of_table.plain(table, ids) if kept is None else kept(ids)


def _rows_key(table: keras.Variable) -> Matrices:
    """Tells rows of a table from the product with it."""
    return matrices([table, table])


class Watch:
    """Notes between what values the rows of each product lie, position by position.

    Args:
        model: already built.
    """

    def __init__(self, model: Transformer) -> None:
        self._sites = sites(model)
        self._seen: dict[str, list[Array]] = {site.name: [] for site in self._sites}

    def products(self) -> dict[Matrices, Product]:
        """Returns products in float32 that note their rows."""
        return {
            key: product
            for site in self._sites
            for key, product in site.products(self._product(site))
        }

    def bounds(self, share: float) -> dict[str, Bounds]:
        """Returns the bounds that hold all values of this share of the positions.

        Zero is between them. A product that was not asked for has bounds of its own.
        """
        found = {}
        for name, seen in self._seen.items():
            lows, highs = np.concatenate(seen, axis=1) if seen else np.zeros((2, 1))
            low = min(0.0, float(np.quantile(lows, 1 - share, method="lower")))
            high = max(0.0, float(np.quantile(highs, share, method="higher")))
            found[name] = Bounds(low, high if high > low else low + 1.0)
        return found

    def _product(self, site: Site) -> Product:
        matrix, bias = site.matrix(), site.bias()
        seen = self._seen[site.name]

        def note(lows: Array, highs: Array) -> None:
            seen.append(np.stack([lows, highs]))

        def product(x: tf.Tensor) -> tf.Tensor:
            ends = [tf.reduce_min(x, axis=1), tf.reduce_max(x, axis=1)]
            with tf.control_dependencies([tf.numpy_function(note, ends, [])]):
                return tf.matmul(x, matrix) + bias

        return product


def why_not() -> str | None:
    """Says why this machine cannot compute products in 8 bits; None: it can.

    The largest sums are tried: instructions older than VNNI add pairs of products up in
    16 bits and cut what is larger.
    """
    if tf.config.list_physical_devices("GPU"):
        return "TensorFlow has no 8-bit products for a GPU"
    try:
        exact = bool(is_exact())
    except tf.errors.OpError:
        return "this TensorFlow has no 8-bit products (oneDNN's, on x86-64)"
    return None if exact else "this processor has no instructions for it (VNNI)"


def is_exact() -> tf.Tensor:
    """Tries the largest sums of 8-bit products, in a graph or not: bool ()."""
    channels, units = 64, 16
    codes = tf.bitcast(tf.fill([channels, units], np.int8(MOST_WEIGHT)), tf.qint8)
    rows = tf.bitcast(tf.fill([2, channels], np.uint8(MOST_ROW)), tf.quint8)
    sums = _sums(rows, codes, tf.zeros([units]))
    return tf.reduce_all(tf.equal(sums, float(channels * MOST_ROW * MOST_WEIGHT)))


def _sums(rows: tf.Tensor, codes: tf.Tensor, offset: tf.Tensor) -> tf.Tensor:
    """Adds up products of whole numbers, float32.

    Args:
        rows: quint8 (rows, channels).
        codes: qint8 (channels, units).
        offset: float32 (units,), added.
    """
    most = float(MOST_WEIGHT)
    return tf.raw_ops.QuantizedMatMulWithBiasAndDequantize(
        a=rows,
        b=codes,
        bias=offset,
        # A range of a step of 1, so that the numbers are given as they are.
        min_a=0.0,
        max_a=float(MOST_ROW),
        min_b=-most,
        max_b=most,
        min_freezed_output=0.0,
        max_freezed_output=0.0,
        Toutput=tf.float32,
        input_quant_mode="SCALED",
    )
