"""Fast matrix products for a few rows on a CPU.

A step of a search has a row for each hypothesis. A product of few rows reads the
matrix where it lies, which is slow in two cases:

- Up to 32 rows take as long as the matrix takes to be read, by one core. As two
  products of half of the matrix each, which depend on nothing of each other, they are
  computed on two cores; the halves are views, not copies.
- With more rows, those places of a column that lie 2^n apart have few lines of the
  processor's cache between them and drive each other out of it. In a copy whose rows
  are a line longer they do not. It is made once, before the first step.

Matrices that are multiplied by the same rows are laid side by side, once, for one
product.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from keras import ops

from t2t_repro.fast.flat_attention import flatten_tokens, unflatten_tokens
from t2t_repro.layers.dense import Dense
from t2t_repro.layers.embedding import TokenEmbedding
from t2t_repro.layers.feed_forward import FeedForward
from t2t_repro.layers.functional import Tensor
from t2t_repro.layers.functional import linear as reference_linear
from t2t_repro.layers.functional import tied_logits as reference_logits
from t2t_repro.system.dispatch import dispatched

# To begin an operation on another core takes about as long as to read half a MiB.
# A matrix of less than 3 MiB in float32 is left whole.
_LEAST_WEIGHTS = 3 * 2**18

# With more rows a core has more to do in computing than in reading.
_MOST_ROWS = 32

# A line of the cache, in float32.
_LONGER = 16

# Rows of a multiple of so many float32 are made longer: eight lines, so that a column
# lies in eight of the 64 sets of a first-level cache, or in fewer.
_ALIASING = 128

_Product = Callable[[Tensor], Tensor]
_Group = tuple[Dense | TokenEmbedding, ...]


@dataclass(frozen=True)
class SharedMatmul:
    """Replaces the `matmul` of a layer by its part of a matmul that layers share.

    Attributes:
        whole: maps float (rows, channels) to (rows, units of all the layers).
        columns: those of the layer; None: it is the only one.
    """

    whole: _Product
    columns: slice | None = None

    def __call__(
        self, x: Tensor, weights: object = None, bias: object = None
    ) -> Tensor:
        """Maps float (..., channels) to (..., units); `whole` has its own weights."""
        rows = self.whole(flatten_tokens(x))
        if self.columns is not None:
            rows = rows[:, self.columns]
        return unflatten_tokens(x, rows)


class StepMatmuls:
    """Computes the matmuls of a decoding step, some of them with prepacked weights.

    Args:
        prepacked: the prepacked matmuls, without biases, by the layers they replace.
    """

    def __init__(self, prepacked: Mapping[_Group, _Product] | None = None) -> None:
        self._prepacked = prepacked or {}

    def __call__(self, x: Tensor, *layers: Dense) -> Tensor:
        """Applies layers to the same rows.

        Args:
            x: float (rows, channels).
            *layers: one or several, all of them with biases or none.

        Returns:
            float (rows, units), the units of all layers side by side.
        """
        product = self._prepacked.get(layers)
        if product is None:
            shared = layers[0].matmul
            if isinstance(shared, SharedMatmul):
                return shared.whole(x)
            if len(layers) == 1:
                return layers[0](x)
            # Concatenating the kernels at every call would take longer.
            product = _by_parts([ops.cast(each.kernel, x.dtype) for each in layers])
        y = product(x)
        if not layers[0].use_bias:
            return y
        biases = [ops.cast(each.bias, x.dtype) for each in layers]
        return ops.add(y, biases[0] if len(biases) == 1 else ops.concatenate(biases))

    def feed_forward(self, network: FeedForward, x: Tensor) -> Tensor:
        """Applies a feed-forward network to float (rows, d_model)."""
        if (network.hidden,) not in self._prepacked:
            return network(x)
        hidden = network.activate(self(x, network.hidden))
        return self(hidden, network.output_projection)

    def logits(self, x: Tensor, table: TokenEmbedding) -> Tensor:
        """Multiplies float (rows, d_model) by a table: (rows, V)."""
        product = self._prepacked.get((table,))
        if product is None:
            return table(x, reverse=True)
        y = product(ops.cast(x, table.compute_dtype))
        return y if table.bias is None else ops.add(y, ops.cast(table.bias, y.dtype))


def prepack(groups: Sequence[_Group], rows: Tensor, dtype: str) -> StepMatmuls:
    """Copies weights for the steps of a search on a CPU, once before the first step.

    Args:
        groups: layers that the same rows are multiplied by; a `TokenEmbedding` is a
            group of its own. Layers with another `matmul` are skipped.
        rows: int32 (), the largest number of rows of a step.
        dtype: of the products.
    """
    groups = _own_weights(groups)
    if not groups:
        return StepMatmuls()
    given = [_weights(group, dtype) for group in groups]
    are_tables = [isinstance(group[0], TokenEmbedding) for group in groups]
    both = list(zip(given, are_tables, strict=True))

    def copies() -> list[Tensor]:
        return [
            _longer(ops.transpose(each) if is_table else each)
            for each, is_table in both
        ]

    def no_copies() -> list[Tensor]:
        # With so few rows a large table is only read in halves.
        return [
            ops.transpose(each if _is_small(each) else each[:0]) if is_table else each
            for each, is_table in both
        ]

    long = ops.cond(ops.convert_to_tensor(rows) > _MOST_ROWS, copies, no_copies)
    products = [
        (_with_table if is_table else _with_kernel)(each, copy)
        for (each, is_table), copy in zip(both, long, strict=True)
    ]
    return StepMatmuls(dict(zip(groups, products, strict=True)))


def split_weights(groups: Sequence[_Group], dtype: str) -> StepMatmuls:
    """Copies weights, with their values now, for small matmuls that XLA compiles.

    XLA divides such a product among the cores itself. It reads two matrices of half
    the columns sooner than one of all, and a transposed one slowest.

    Args:
        groups: as those of `prepack`.
        dtype: of the products.
    """
    prepacked = {}
    for group in _own_weights(groups):
        is_table = isinstance(group[0], TokenEmbedding)
        weights = _weights(group, dtype)
        if is_table or len(group) > 1 or not _is_small(weights):
            parts = _in_columns(ops.transpose(weights) if is_table else weights)
            prepacked[group] = _by_parts(parts)
    return StepMatmuls(prepacked)


def _own_weights(groups: Sequence[_Group]) -> list[_Group]:
    """Returns the groups whose layers multiply by their own weights."""
    return [g for g in groups if g[0].matmul in (reference_linear, reference_logits)]


def _weights(group: _Group, dtype: str) -> Tensor:
    """Returns the kernels side by side, (channels, units), or the table, (V, d)."""
    weights = [
        ops.cast(each.table if isinstance(each, TokenEmbedding) else each.kernel, dtype)
        for each in group
    ]
    return weights[0] if len(weights) == 1 else ops.concatenate(weights, 1)


def linear(x: Tensor, kernel: Tensor, bias: Tensor | None = None) -> Tensor:
    """Replaces `functional.linear`: one matmul for all positions of a batch."""
    rows = flatten_tokens(x)
    y = matmul(rows, ops.cast(kernel, rows.dtype))
    return unflatten_tokens(x, y if bias is None else ops.add(y, bias))


def tied_logits(x: Tensor, table: Tensor) -> Tensor:
    """Replaces `functional.tied_logits`: one matmul for all positions of a batch."""
    rows = flatten_tokens(x)
    y = matmul(rows, ops.cast(table, rows.dtype), transposed=True)
    return unflatten_tokens(x, y)


@dispatched
def matmul(x: Tensor, matrix: Tensor, transposed: bool = False) -> Tensor:
    """``x W`` or ``x W^T``: float (rows, channels) to (rows, units)."""
    return ops.matmul(x, ops.transpose(matrix) if transposed else matrix)


def _longer(matrix: Tensor) -> Tensor:
    """Makes the rows of float (channels, units) a line longer where that helps."""
    if not _is_aliasing(matrix.shape[1]):
        return matrix
    return ops.pad(matrix, [[0, 0], [0, _LONGER]])


def _with_kernel(kernel: Tensor, long: Tensor) -> _Product:
    """Takes float (channels, units), and the same as `prepacked` copied it."""
    middle = [kernel.shape[0] // 2]
    halves = ops.split(kernel, middle, 0)

    def divided(x: Tensor) -> Tensor:
        first, second = map(ops.matmul, ops.split(x, middle, 1), halves)
        return first + second

    return _product_of(kernel, divided, long, kernel.shape[1])


def _with_table(table: Tensor, long: Tensor) -> _Product:
    """Takes float (units, channels), and (channels, units) as `prepacked` copied it."""
    halves = ops.split(table, [table.shape[0] // 2], 0)

    def divided(x: Tensor) -> Tensor:
        products = [ops.matmul(x, ops.transpose(half)) for half in halves]
        return ops.concatenate(products, 1)

    return _product_of(table, divided, long, table.shape[0])


def _in_columns(matrix: Tensor) -> list[Tensor]:
    """Divides a large matrix, float (channels, units), into two of half the units."""
    if _is_small(matrix):
        return [matrix]
    return list(ops.split(matrix, [matrix.shape[1] // 2], 1))


def _by_parts(parts: list[Tensor]) -> _Product:
    """Multiplies by matrices that stand side by side."""

    def product(x: Tensor) -> Tensor:
        products = [matmul(x, part) for part in parts]
        return products[0] if len(parts) == 1 else ops.concatenate(products, 1)

    return product


def _product_of(
    matrix: Tensor, divided: _Product, long: Tensor, units: int
) -> _Product:
    """Divides a product of few rows with a large matrix, and no other."""

    def whole(x: Tensor) -> Tensor:
        product = ops.matmul(x, long)
        if _is_aliasing(units):
            product = product[:, :units]
        # TensorFlow knows no width of what is longer or not; a reshape tells it.
        return ops.reshape(product, (-1, units))

    def product(x: Tensor) -> Tensor:
        few = ops.shape(x)[0] <= _MOST_ROWS
        return ops.cond(few, lambda: divided(x), lambda: whole(x))

    return whole if _is_small(matrix) else product


def _is_aliasing(units: int) -> bool:
    """Tells whether the places of a column are in each other's way in the cache."""
    return units % _ALIASING == 0


def _is_small(matrix: Tensor) -> bool:
    rows, columns = matrix.shape
    return bool(rows * columns < _LEAST_WEIGHTS)
