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

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from types import MappingProxyType

import keras
from keras import ops

from t2t_repro.fast.flat_attention import flatten_tokens, unflatten_tokens
from t2t_repro.fast.stand_ins import stand_in_for
from t2t_repro.layers.dense import Dense
from t2t_repro.layers.functional import Tensor
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
_prepared: ContextVar[Mapping[tuple[int, ...], _Product]] = ContextVar(
    "prepared", default=MappingProxyType({})
)


@contextlib.contextmanager
def prepacked(
    kernels: Sequence[Sequence[keras.Variable]],
    tables: Sequence[keras.Variable],
    rows: Tensor,
    dtype: str,
) -> Iterator[None]:
    """Makes `multiply` and `multiply_transposed` quick for some matrices.

    Wrap the whole loop in it, not one iteration: what it makes is made once.

    Args:
        kernels: those that `multiply` takes together, each float (channels, units).
            What something stands in for is left out.
        tables: float (units, channels), for `multiply_transposed`.
        rows: int32 (), the most rows that a product will have.
        dtype: of the products.
    """
    kernels = [group for group in kernels if stand_in_for(*group) is None]
    tables = [table for table in tables if stand_in_for(table) is None]
    given = [_side_by_side(group, dtype) for group in kernels]
    turned = [ops.cast(table, dtype) for table in tables]

    def copies() -> list[Tensor]:
        return [*map(_longer, given), *map(_longer, map(ops.transpose, turned))]

    def no_copies() -> list[Tensor]:
        # With so few rows a large table is only read in halves.
        read = (table if _is_small(table) else table[:0] for table in turned)
        return given + [ops.transpose(table) for table in read]

    long = ops.cond(ops.convert_to_tensor(rows) > _MOST_ROWS, copies, no_copies)
    products = [
        *map(_with_kernel, given, long),
        *map(_with_table, turned, long[len(given) :]),
    ]
    keys = [*map(_key, kernels), *(_key([table]) for table in tables)]
    own = dict(zip(keys, products, strict=True))
    token = _prepared.set({**_prepared.get(), **own})
    try:
        yield
    finally:
        _prepared.reset(token)


class SplitWeights:
    """Copies of matrices, for products of few rows that XLA compiles.

    XLA divides such a product among the cores itself. It reads two matrices of half
    the columns sooner than one of all, and a transposed one slowest.

    Args:
        kernels: those that `multiply` takes together, each float (channels, units);
            their values now.
        tables: float (units, channels), for `multiply_transposed`.
        dtype: of the products.
    """

    def __init__(
        self,
        kernels: Sequence[Sequence[keras.Variable]],
        tables: Sequence[keras.Variable],
        dtype: str,
    ) -> None:
        self._parts: dict[tuple[int, ...], list[Tensor]] = {}
        for group in kernels:
            kernel = _side_by_side(group, dtype)
            if len(group) > 1 or not _is_small(kernel):
                self._parts[_key(group)] = _in_columns(kernel)
        for table in tables:
            turned = ops.transpose(ops.cast(table, dtype))
            self._parts[_key([table])] = _in_columns(turned)

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        """Makes `multiply` and `multiply_transposed` multiply by the copies."""
        products = {key: _by_parts(parts) for key, parts in self._parts.items()}
        token = _prepared.set({**_prepared.get(), **products})
        try:
            yield
        finally:
            _prepared.reset(token)


def linear(x: Tensor, kernel: keras.Variable, bias: Tensor | None = None) -> Tensor:
    """Stands in for `formulas.product`: one product for all positions of a batch."""
    other = stand_in_for(kernel)
    if other is not None:
        return unflatten_tokens(x, other(flatten_tokens(x)))
    y = multiply(flatten_tokens(x), kernel)
    return unflatten_tokens(x, y if bias is None else ops.add(y, bias))


def product_of_layers(x: Tensor, *layers: Dense) -> Tensor:
    """Does as layers do, one after the other: float (rows, channels) to (rows, units).

    The units are those of all layers, side by side.
    """
    kernels = [layer.kernel for layer in layers]
    other = stand_in_for(*kernels)
    if other is not None:
        return other(x)
    y = multiply(x, *kernels)
    if layers[0].use_bias:
        y = y + ops.concatenate([ops.cast(each.bias, x.dtype) for each in layers])
    return y


def tied_logits(x: Tensor, table: keras.Variable) -> Tensor:
    """Stands in for `formulas.tied_logits`."""
    other = stand_in_for(table)
    if other is not None:
        return unflatten_tokens(x, other(flatten_tokens(x)))
    return unflatten_tokens(x, multiply_transposed(flatten_tokens(x), table))


@dispatched
def matmul(x: Tensor, matrix: Tensor, transposed: bool = False) -> Tensor:
    """``x W`` or ``x W^T``: float (rows, channels) to (rows, units)."""
    return ops.matmul(x, ops.transpose(matrix) if transposed else matrix)


def multiply(x: Tensor, *kernels: keras.Variable) -> Tensor:
    """Multiplies float (rows, channels) by one kernel or several side by side."""
    product = _prepared.get().get(_key(kernels))
    if product is None:  # To lay kernels side by side at every call would take longer.
        product = _by_parts([ops.cast(kernel, x.dtype) for kernel in kernels])
    return product(x)


def multiply_transposed(x: Tensor, table: keras.Variable) -> Tensor:
    """Computes ``x @ table.T``: float (rows, channels) to (rows, units)."""
    product = _prepared.get().get(_key([table]))
    if product is None:
        return matmul(x, ops.cast(table, x.dtype), transposed=True)
    return product(x)


def _key(matrices: Sequence[keras.Variable]) -> tuple[int, ...]:
    return tuple(map(id, matrices))


def _side_by_side(kernels: Sequence[keras.Variable], dtype: str) -> Tensor:
    """Joins float (channels, units) along the second axis; one is left as it is."""
    cast = [ops.cast(kernel, dtype) for kernel in kernels]
    return cast[0] if len(cast) == 1 else ops.concatenate(cast, 1)


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
        parts = zip(ops.split(x, middle, 1), halves, strict=True)
        first, second = (ops.matmul(part, half) for part, half in parts)
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
