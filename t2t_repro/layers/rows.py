"""Positions as the rows of a matrix.

Of all parts of a layer only attention knows which positions make a sentence. The
others treat each position alike, so that a stack lays the sentences of a batch one
after the other, once, and its layers hand on matrices.
"""

from keras import ops

from t2t_repro.layers.typing import Shape, Tensor


def rows_of(x: Tensor) -> Tensor:
    """Lays sentences one after the other.

    Args:
        x: float (batch, length, channels).

    Returns:
        float (batch * length, channels).
    """
    return ops.reshape(x, (-1, x.shape[-1]))


def sentences_of(rows: Tensor, shape: Shape) -> Tensor:
    """Undoes `rows_of`.

    Args:
        rows: float (batch * length, channels).
        shape: batch and length.

    Returns:
        float (batch, length, channels).
    """
    return ops.reshape(rows, (*shape, rows.shape[-1]))
