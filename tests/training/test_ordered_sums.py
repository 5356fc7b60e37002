"""Tests of sums that do not depend on the number of devices."""

from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.training import ordered_sums

SIZE = 50


def vectors(count):
    """Returns vectors whose sum depends on the order of additions."""
    rng = np.random.default_rng(count)
    scales = 10.0 ** rng.integers(-3, 4, [count, SIZE])
    return (rng.normal(size=[count, SIZE]) * scales).astype(np.float32)


def sum_on_replicas(monkeypatch, values, replicas):
    """Returns the sum of the vectors on some replicas, and each replica's numbers."""
    rows, numbers = [], []

    def compute(number):
        numbers[-1].append(int(number))
        return tf.constant(values)[number]

    for replica in range(replicas):
        numbers.append([])
        first, count = tf.constant(replica), tf.constant(len(values))
        rows.append(
            ordered_sums.sum_microbatches(compute, SIZE, first, replicas, count)
        )
    context = SimpleNamespace(
        num_replicas_in_sync=replicas,
        all_gather=lambda value, axis: tf.stack(rows),
        all_reduce=lambda kind, value: tf.add_n(rows),
    )
    monkeypatch.setattr(tf.distribute, "get_replica_context", lambda: context)
    return ordered_sums.sum_replicas(rows[0]).numpy(), numbers


@pytest.mark.parametrize("replicas", [1, 2, 4, 8])
@pytest.mark.parametrize("count", [1, 3, 7, 8, 19])
def test_the_bits_do_not_depend_on_the_number_of_replicas(monkeypatch, count, replicas):
    x = vectors(count)
    g = [np.zeros(SIZE, np.float32) for _ in range(8)]
    for number, vector in enumerate(x):
        g[number % 8] += vector
    left, right = (g[0] + g[4]) + (g[2] + g[6]), (g[1] + g[5]) + (g[3] + g[7])
    actual, numbers = sum_on_replicas(monkeypatch, x, replicas)
    assert actual.tobytes() == (left + right).tobytes()
    # Replicas take turns, as in `select_microbatches`.
    assert list(map(sorted, numbers)) == [
        list(range(replica, count, replicas)) for replica in range(replicas)
    ]
    # The test would notice another order.
    assert count < 3 or (actual != np.add.accumulate(x)[-1]).any()


@pytest.mark.parametrize("replicas", [3, 6, 16])
def test_other_numbers_of_replicas_add_each_vector_once(monkeypatch, replicas):
    x = vectors(19)
    actual, _ = sum_on_replicas(monkeypatch, x, replicas)
    # An error of rounding per addition, of the largest partial sum.
    bound = 19 * 2.0**-24 * np.abs(x).sum(0)
    assert (np.abs(actual - x.astype(float).sum(0)) <= bound).all()


def test_vectors_have_the_elements_of_all_tensors():
    values = [np.float32(1), np.arange(6, dtype=np.float32).reshape(2, 3)]
    vector = ordered_sums.flatten(values)
    assert vector.numpy().tolist() == [1, 0, 1, 2, 3, 4, 5]
    one, other = ordered_sums.unflatten(vector, [[], [2, 3]])
    np.testing.assert_array_equal(one, values[0])
    np.testing.assert_array_equal(other, values[1])
