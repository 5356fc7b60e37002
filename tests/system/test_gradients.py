"""Tests of custom gradients, whose graphs must not remain in memory."""

import gc
import weakref

import keras
import numpy as np
import pytest
import tensorflow as tf

import t2t_repro
from t2t_repro.system.gradients import custom_gradient


@custom_gradient
def triple(x):
    """Returns ``3 x``; its gradient is 5, so that it differs from the derivative."""
    return 3 * x, lambda upstream: 5 * upstream


def gradient(function, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return float(y), float(tape.gradient(y, x))


def test_gradients_are_the_custom_ones_eagerly_and_in_graphs():
    inner = tf.function(lambda x: triple(2 * x), autograph=False)
    outer = tf.function(lambda x: inner(x) + triple(x), autograph=False)

    @tf.function(autograph=False)
    def loop(x):
        return tf.while_loop(
            lambda i, _: i < 2, lambda i, x: (i + 1, triple(x)), (0, x)
        )[1]

    x = tf.constant(1.0)
    assert gradient(triple, x) == (3, 5)
    assert gradient(outer, x) == (6 + 3, 10 + 5)
    assert gradient(loop, x) == (9, 25)
    whole = tf.function(lambda x: gradient_in_graph(outer, x), autograph=False)
    assert float(whole(x)) == 15


def gradient_in_graph(function, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return tape.gradient(y, x)


def test_graphs_of_custom_gradients_are_deleted():
    def trace():
        weight = tf.Variable(2.0)
        function = tf.function(lambda x: triple(x * weight), autograph=False)
        assert float(function(tf.constant(1.0))) == 6
        graph = function.get_concrete_function(tf.TensorSpec([])).graph
        return weakref.ref(graph)

    graph = trace()
    gc.collect()
    assert graph() is None


def count_resources():
    """Returns the number of handles of variables and other resources."""
    gc.collect()
    # `isinstance` reads `__class__`, at which objects of torch import modules and warn.
    objects = (each for each in gc.get_objects() if issubclass(type(each), tf.Tensor))
    return sum(each.dtype == tf.resource for each in objects)


@pytest.mark.medium
def test_a_deleted_model_that_fit_has_trained_leaves_no_weights():
    def train():
        model = t2t_repro.Transformer(
            9, d_model=8, num_heads=2, d_ff=8, num_layers=1, name="transformer"
        )
        loss = t2t_repro.losses.LabelSmoothedCrossEntropy()
        model.compile("sgd", loss, jit_compile=False)
        rows = np.array([[3, 4, 1]])
        model.fit({"inputs": rows, "targets": rows}, rows, verbose=0)

    before = count_resources()
    train()
    keras.backend.clear_session()
    assert count_resources() <= before
