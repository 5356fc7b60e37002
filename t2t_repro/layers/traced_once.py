"""Calls that differ in tensors alone, traced as one."""

from collections.abc import Callable
from typing import TypeVar

import keras

Function = TypeVar("Function", bound=Callable[..., object])


def traced_once(function: Function) -> Function:
    """Makes one graph of a function for all of its calls inside a TensorFlow graph.

    Python builds a graph operation by operation, which for layers that are alike takes
    as many times as long as there are layers. TensorFlow puts the function in place of
    its calls before it optimizes the graph, so that a step takes no longer.

    Args:
        function: takes nested tensors and None; what it captures is the same in every
            call.

    Returns:
        The function itself where nothing is traced, or on another backend.
    """
    if keras.backend.backend() != "tensorflow":
        return function
    import tensorflow as tf

    if not tf.inside_function():
        return function
    traced: Function = tf.function(function, autograph=False)
    return traced
