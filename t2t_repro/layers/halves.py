"""Products of few rows with a large matrix, on two cores.

Such a product takes as long as the matrix takes to be read, and TensorFlow does not
divide it among cores. As two products of half of the matrix each, which depend on
nothing of each other, it is computed on two; the halves are views, not copies.
"""

from keras import ops

from t2t_repro.layers.typing import Tensor

# To begin an operation on another core takes about as long as to read half a MiB.
# A matrix of less than 4 MiB in float32 is left whole.
_LEAST_WEIGHTS = 2**20

# With more rows a core has more to do in computing than in reading.
_MOST_ROWS = 32


def product(x: Tensor, matrix: Tensor) -> Tensor:
    """Computes ``x @ matrix``, where it pays as the sum over two halves of channels.

    Args:
        x: float (rows, channels).
        matrix: float (channels, units).

    Returns:
        float (rows, units).
    """

    def whole() -> Tensor:
        return ops.matmul(x, matrix)

    def divided() -> Tensor:
        middle = [matrix.shape[0] // 2]
        halves = zip(ops.split(x, middle, 1), ops.split(matrix, middle, 0), strict=True)
        first, second = (ops.matmul(part, half) for part, half in halves)
        return first + second

    if _is_small(matrix):
        return whole()
    return ops.cond(ops.shape(x)[0] <= _MOST_ROWS, divided, whole)


def product_with_transposed(x: Tensor, matrix: Tensor) -> Tensor:
    """Computes ``x @ matrix.T``, where it pays in two halves of its columns.

    Args:
        x: float (rows, channels).
        matrix: float (units, channels).

    Returns:
        float (rows, units).
    """

    def whole() -> Tensor:
        return ops.matmul(x, ops.transpose(matrix))

    def divided() -> Tensor:
        halves = ops.split(matrix, [matrix.shape[0] // 2], 0)
        return ops.concatenate(
            [ops.matmul(x, ops.transpose(half)) for half in halves], 1
        )

    if _is_small(matrix):
        return whole()
    return ops.cond(ops.shape(x)[0] <= _MOST_ROWS, divided, whole)


def _is_small(matrix: Tensor) -> bool:
    rows, columns = matrix.shape
    return bool(rows * columns < _LEAST_WEIGHTS)
