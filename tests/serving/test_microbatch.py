"""Tests of the computation in micro-batches."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.serving.microbatch import compute_in_microbatches, count_rows


@pytest.mark.parametrize("batch", [0, 1, 3, 4, 10])
def test_every_row_is_computed_once_in_order(batch):
    sizes = []

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, 2], tf.float32),
            tf.TensorSpec([None], tf.string),
        ]
    )
    def graph(numbers, texts):
        def compute(numbers, texts):
            tf.py_function(lambda n: sizes.append(len(n)), [texts], [])
            return numbers * 2, tf.strings.join([texts, "!"])

        return compute_in_microbatches(
            compute,
            [numbers, texts],
            tf.constant(3),
            [tf.TensorSpec([None, 2], tf.float32), tf.TensorSpec([None], tf.string)],
        )

    numbers = np.arange(2 * batch, dtype=np.float32).reshape(batch, 2)
    texts = np.array([str(n).encode() for n in range(batch)], object)
    doubled, marked = graph(numbers, tf.constant(texts, tf.string))
    np.testing.assert_array_equal(doubled, numbers * 2)
    assert marked.numpy().tolist() == [text + b"!" for text in texts]
    assert sizes == [3] * (batch // 3) + [batch % 3] * bool(batch % 3)


def test_rows_within_a_number_of_positions():
    widths = (1, 7, 100, 101, 0)
    numbers = [int(count_rows(100, tf.constant(width))) for width in widths]
    assert numbers == [100, 14, 1, 1, 100]
