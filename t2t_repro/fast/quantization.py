"""The products of a model in 8 bits, on a CPU (see `whole_numbers`).

``x W`` is computed as ``(a Q - zero * sum(Q)) * step * scale``, where a are the rows in
unsigned 8 bits, ``x = (a - zero) * step``, and Q is the matrix in signed 8 bits, each
column with a scale of its own. ``zero`` and ``step`` come of the bounds of x: constants
found once on real text (`RangeObserver`), so that a row's product depends only on
the row.
The sums are whole numbers and exact.

What the rectifier of a feed-forward network lets through stays in 8 bits on its way to
the next product, whose bounds say how.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from t2t_repro.fast.int8_matmul import INT8_MAX, UINT8_MAX, int8_matmul
from t2t_repro.fast.stand_ins import Matrices, Product, matrices, stand_in, stand_in_for
from t2t_repro.layers.dense import Dense
from t2t_repro.layers.embedding import TokenEmbedding
from t2t_repro.layers.functional import Tensor, embedding_lookup, relu
from t2t_repro.models.transformer import Transformer

Array = npt.NDArray[np.float32]


class ActivationRange(NamedTuple):
    """Between what the values of a product's rows lie; what does not is cut."""

    low: float
    high: float


class MatmulGroup(NamedTuple):
    """Matrices that the same rows are multiplied by.

    Attributes:
        name: the path of the first in the model.
        layers: those that multiply, `Dense` or one `TokenEmbedding`.
        rectified_for: the name of the site whose rows are the positive part of the
            product; None: there is none, the product is asked for as it is.
    """

    name: str
    layers: tuple[Dense | TokenEmbedding, ...]
    rectified_for: str | None = None

    def variables(self) -> list[keras.Variable]:
        """Returns the matrices."""
        return [_matrix_of(layer) for layer in self.layers]

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


def matmul_groups(model: Transformer) -> list[MatmulGroup]:
    """Returns all large products of a built model."""
    prefix = f"{model.name}/"

    def name(layer: Dense | TokenEmbedding) -> str:
        return str(_matrix_of(layer).path.removeprefix(prefix))

    def site(*layers: Dense | TokenEmbedding) -> MatmulGroup:
        return MatmulGroup(name(layers[0]), layers)

    found = []
    for stack in (model.encoder, model.decoder):
        for layer in stack.layers_in_order():
            back, network = layer.self_attention, layer.feed_forward
            hidden, output = site(network.hidden), site(network.output_projection)
            if network.activation == "relu":
                hidden = hidden._replace(rectified_for=output.name)
            found += [
                site(back.query, back.key, back.value),
                site(back.output_projection),
                hidden,
                output,
            ]
            if stack is model.decoder:
                cross = layer.cross_attention
                found += [
                    site(cross.query),
                    site(cross.key, cross.value),
                    site(cross.output_projection),
                ]
    return [*found, site(model.softmax_table)]


def _matrix_of(layer: Dense | TokenEmbedding) -> keras.Variable:
    return layer.table if isinstance(layer, TokenEmbedding) else layer.kernel


class QuantizedMatmul:
    """A matrix in signed 8 bits, and the product with it.

    Args:
        matrix: float32 (channels, units).
        bias: float32 (units,), added to the product.
        bounds: of the rows; None: nothing is multiplied by it.
        rectified: the bounds of the next product's rows, from 0 on, where these are
            this product's positive part; it is given in 8 bits then.
    """

    def __init__(
        self,
        matrix: Array,
        bias: Array | float = 0.0,
        bounds: ActivationRange | None = None,
        rectified: ActivationRange | None = None,
    ) -> None:
        most = np.abs(matrix).max(axis=0)
        self._most = np.where(most == 0, 1, most).astype(np.float32)
        self._scale = self._most / INT8_MAX
        codes = np.rint(matrix / self._scale).astype(np.int8)
        # Column by column, as `rows` takes them: qint8 (units, channels).
        self._codes = tf.Variable(
            tf.bitcast(np.ascontiguousarray(codes.T), tf.qint8),
            trainable=False,
            name="codes",
        )
        low, high = bounds or ActivationRange(0, 1)
        self._step = (high - low) / UINT8_MAX
        self._zero = round(-low / self._step)
        zero = self._zero * self._step * self._scale
        self._bias = (bias - zero * codes.sum(axis=0, dtype=np.int64)).astype(
            np.float32
        )
        # In a function, so that several graphs of an export have one copy.
        self._columns = tf.function(self._of_columns, autograph=False)
        self._rectified = rectified

    def product(self, x: tf.Tensor) -> tf.Tensor:
        """Multiplies float32 (rows, channels), or uint8 as another one rectified it.

        Returns float32 (rows, units); uint8 where it rectifies.
        """
        if x.dtype == tf.uint8:
            rows = tf.bitcast(x, tf.quint8)
        else:
            rows, _, _ = tf.raw_ops.QuantizeV2(
                input=x,
                min_range=-self._zero * self._step,
                max_range=(UINT8_MAX - self._zero) * self._step,
                T=tf.quint8,
                mode="MIN_COMBINED",
                round_mode="HALF_AWAY_FROM_ZERO",
            )
        most_row = UINT8_MAX * self._step
        codes, (bias, most) = self._codes.value(), self._columns()
        if self._rectified is None:
            return int8_matmul(rows, codes, bias, most_row, most)
        y = int8_matmul(rows, codes, bias, most_row, most, self._rectified.high)
        return tf.bitcast(y, tf.uint8)

    def _of_columns(self) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns bias and largest weight of each, float32 (units,)."""
        return tf.constant(self._bias), tf.constant(self._most)

    def rows(self, ids: tf.Tensor) -> tf.Tensor:
        """Returns columns of the matrix, for int32 (...): float32 (..., channels)."""
        found = tf.bitcast(tf.gather(self._codes.value(), ids), tf.int8)
        return tf.cast(found, tf.float32) * tf.gather(self._scale, ids)[..., None]


def quantize_model(model: Transformer, bounds: Mapping[str, ActivationRange]) -> None:
    """Computes the products of a built model in 8 bits from now on.

    Tables of symbols are kept in 8 bits, too. What was traced before stays as it is.

    Args:
        model: its weights are taken as they are now.
        bounds: by the name of each of its `matmul_groups`.
    """
    products: dict[Matrices, Product] = {}
    for site in matmul_groups(model):
        rectified = None if site.rectified_for is None else bounds[site.rectified_for]
        quantised = QuantizedMatmul(
            site.matrix(), site.bias(), bounds[site.name], rectified
        )
        products.update(site.products(quantised.product))
        if site.layers[0] is model.softmax_table:
            products[_rows_key(model.softmax_table.table)] = quantised.rows
    for layer in model.layers:
        if isinstance(layer, TokenEmbedding) and layer is not model.softmax_table:
            table = np.asarray(layer.table, np.float32).T
            products[_rows_key(layer.table)] = QuantizedMatmul(table).rows
    stand_in(model, products)


def is_quantized(model: Transformer) -> bool:
    """Whether a model's products are computed in 8 bits."""
    return stand_in_for(model.softmax_table.table) is not None


def look_up(table: keras.Variable, ids: Tensor) -> Tensor:
    """Stands in for `formulas.embedding_lookup`."""
    kept = stand_in_for(table, table)
    return embedding_lookup.reference(table, ids) if kept is None else kept(ids)


def rectified(x: Tensor) -> Tensor:
    """Stands in for `formulas.relu`; what is in 8 bits already is rectified."""
    return x if tf.uint8 == x.dtype else relu.reference(x)


def _rows_key(table: keras.Variable) -> Matrices:
    """Tells rows of a table from the product with it."""
    return matrices([table, table])


class RangeObserver:
    """Notes between what values the rows of each product lie, position by position.

    Args:
        model: already built.
    """

    def __init__(self, model: Transformer) -> None:
        self._sites = matmul_groups(model)
        self._seen: dict[str, list[Array]] = {site.name: [] for site in self._sites}

    def products(self) -> dict[Matrices, Product]:
        """Returns products in float32 that note their rows."""
        return {
            key: product
            for site in self._sites
            for key, product in site.products(self._product(site))
        }

    def bounds(self, share: float) -> dict[str, ActivationRange]:
        """Returns the bounds that hold all values of this share of the positions.

        Zero is between them. A product that was not asked for has bounds of its own.
        """
        found = {}
        for name, seen in self._seen.items():
            lows, highs = np.concatenate(seen, axis=1) if seen else np.zeros((2, 1))
            low = min(0.0, float(np.quantile(lows, 1 - share, method="lower")))
            high = max(0.0, float(np.quantile(highs, share, method="higher")))
            found[name] = ActivationRange(low, high if high > low else low + 1.0)
        return found

    def _product(self, site: MatmulGroup) -> Product:
        matrix, bias = site.matrix(), site.bias()
        seen = self._seen[site.name]

        def note(lows: Array, highs: Array) -> None:
            seen.append(np.stack([lows, highs]))

        def product(x: tf.Tensor) -> tf.Tensor:
            ends = [tf.reduce_min(x, axis=1), tf.reduce_max(x, axis=1)]
            with tf.control_dependencies([tf.numpy_function(note, ends, [])]):
                return tf.matmul(x, matrix) + bias

        return product
