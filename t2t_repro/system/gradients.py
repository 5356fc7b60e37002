"""Custom gradients that do not keep deleted models in memory."""

import functools
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import keras


def custom_gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a function as `tf.custom_gradient` does; see `release_gradients`.

    Args:
        function: Maps tensors to its results and their gradient function.
    """

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        with release_gradients():
            return keras.ops.custom_gradient(function)(*args)

    return call


@contextmanager
def release_gradients() -> Iterator[None]:
    """Lets the current graph own the gradient functions created in the context.

    For each call of a custom gradient in a graph, TensorFlow registers a function for
    the rest of the process. This function refers to the graph, and the graph to the
    variables that it captures, so that the weights of a deleted model would stay in
    memory. In this context, the registry refers to the functions weakly. Other threads
    should not trace functions that TensorFlow differentiates later.
    """
    if keras.backend.backend() != "tensorflow":
        yield
        return
    import tensorflow as tf
    from tensorflow.python.framework.ops import gradient_registry

    registered = gradient_registry._registry
    before = set(registered)
    yield
    for name in set(registered) - before:
        entry = registered[name]
        gradient = entry["type"]
        tf.compat.v1.get_default_graph().add_to_collection("gradients", gradient)
        entry["type"] = _call_weakly(weakref.ref(gradient))
        weakref.finalize(gradient, registered.pop, name, None).atexit = False


def _call_weakly(reference: weakref.ref[Callable[..., Any]]) -> Callable[..., Any]:
    """Returns a function that calls the function behind a weak reference."""

    def call(*args: Any) -> Any:
        function = reference()
        assert function is not None, "the graph of this gradient does not exist anymore"
        return function(*args)

    return call
