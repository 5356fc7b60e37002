"""Exact top-k of wide rows, several times faster on a CPU than `tf.math.top_k`."""

import tensorflow as tf

from t2t_repro.decoding import candidates
from t2t_repro.fast.thresholds import CHUNK_WIDTHS, SMALLEST_CHUNKED
from t2t_repro.fast.xla_kernels import maximum


def top_k(values: tf.Tensor, k: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Finds the k largest elements of each row.

    TensorFlow's CPU kernel uses a heap for each row, which is 5 to 9 times slower than
    computing the maximum (37,000 columns, k = 9). The k largest elements are in the k
    chunks with the largest maxima, so only these chunks are searched. Ties are broken
    by column: the first of the chunks with equal maxima are selected, and the selected
    chunks are searched in their original order.

    Args:
        values: float (rows, columns).
        k: Number of elements; all columns if there are fewer.

    Returns:
        values: float (rows, k), descending; ties are broken by the lower column.
        columns: int32 (rows, k).
    """
    columns = values.shape[-1] or 0
    width = chunk_width(columns)
    chunks = -(-columns // width)
    if columns < SMALLEST_CHUNKED or chunks <= k:
        return candidates.top_k.reference(values, k)
    padding = chunks * width - columns
    if padding:
        values = tf.pad(values, [[0, 0], [0, padding]], constant_values=float("-inf"))
    # (rows, chunks * width) -> (rows, chunks, width)
    chunked = tf.reshape(values, [-1, chunks, width])
    _, best = tf.math.top_k(maximum(chunked), k)
    best = tf.sort(best, axis=1)
    # (rows, k, width) -> (rows, k * width)
    selected = tf.reshape(tf.gather(chunked, best, batch_dims=1), [-1, k * width])
    largest, position = tf.math.top_k(selected, k)
    chunk = tf.gather(best, position // width, batch_dims=1)
    return largest, chunk * width + position % width


def chunk_width(columns: int) -> int:
    """Returns the chunk width with the least padding; the narrowest if several tie.

    Padding copies the whole matrix; a divisor of `columns` needs none.
    """
    return min(CHUNK_WIDTHS, key=lambda width: (-columns % width, width))
