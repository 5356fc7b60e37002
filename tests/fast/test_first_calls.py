"""Tests of the first call of a traced function."""

import tensorflow as tf

from t2t_repro.fast.first_calls import FirstCalls


def test_a_function_is_called_once_without_rows():
    calls = []

    def function(*arguments):
        calls.append([tuple(each.shape) for each in arguments])

    first_calls = FirstCalls()
    for rows in (4, 2):
        weights = [[tf.ones([2, 2])], []]
        first_calls(function, [tf.ones([rows, 3]), tf.ones([rows, 5, 1])], weights)
    assert calls == [[(0, 3), (0, 5, 1), (2, 2)]]
