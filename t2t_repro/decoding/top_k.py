"""The k largest of many."""

import tensorflow as tf

from t2t_repro.system.dispatch import dispatched


@dispatched
def top_k(values: tf.Tensor, k: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Finds the k largest elements of each row.

    Args:
        values: float (rows, columns).
        k: how many; all columns if there are fewer.

    Returns:
        values: float (rows, k), descending; of equal ones the lower column first.
        columns: int32 (rows, k).
    """
    columns = values.shape[-1]
    if columns is None:
        return tf.math.top_k(values, tf.minimum(k, tf.shape(values)[-1]))
    return tf.math.top_k(values, min(k, columns))
