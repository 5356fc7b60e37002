"""Products of few rows with a large matrix, on two cores.

Such a product takes as long as the matrix takes to be read, and TensorFlow does not
divide it among cores. As two products of half of the matrix each, which depend on
nothing of each other, it is computed on two; the halves are views, not copies.
"""

from collections.abc import Callable

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

    def divided() -> Tensor:
        middle = [matrix.shape[0] // 2]
        halves = zip(ops.split(x, middle, 1), ops.split(matrix, middle, 0), strict=True)
        first, second = (ops.matmul(part, half) for part, half in halves)
        return first + second

    return _cheaper(x, matrix, divided, lambda: ops.matmul(x, matrix))


def product_with_transposed(x: Tensor, matrix: Tensor) -> Tensor:
    """Computes ``x @ matrix.T``, where it pays in two halves of its columns.

    Args:
        x: float (rows, channels).
        matrix: float (units, channels).

    Returns:
        float (rows, units).
    """

    def divided() -> Tensor:
        halves = ops.split(matrix, [matrix.shape[0] // 2], 0)
        products = [ops.matmul(x, ops.transpose(half)) for half in halves]
        return ops.concatenate(products, 1)

    return _cheaper(x, matrix, divided, lambda: ops.matmul(x, ops.transpose(matrix)))


def _cheaper(
    x: Tensor,
    matrix: Tensor,
    divided: Callable[[], Tensor],
    whole: Callable[[], Tensor],
) -> Tensor:
    """Divides a product of few rows with a large matrix, and no other.

    Args:
        x: float (rows, channels).
        matrix: float, of two dimensions.
        divided: gives the product in halves, float (rows, units).
        whole: gives it in one, float (rows, units).

    Returns:
        float (rows, units).
    """
    height, width = matrix.shape
    if height * width < _LEAST_WEIGHTS:
        return whole()
    return ops.cond(ops.shape(x)[0] <= _MOST_ROWS, divided, whole)
