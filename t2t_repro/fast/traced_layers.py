"""The layers of a stack, traced as one."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf
from keras import ops

from t2t_repro.layers.dropout import dropout_seed, given_seed, salt_of, salted
from t2t_repro.layers.formulas import Tensor, one_after_another


def traced_once(
    layers: Sequence[keras.layers.Layer], x: Tensor, **context: Any
) -> Tensor:
    """Stands in for `formulas.one_after_another` inside a TensorFlow graph.

    Python builds a graph operation by operation, which for layers that are alike takes
    as many times as long as there are layers. Here it is the first layer that is
    called, with the weights of each, in one function. TensorFlow puts the function in
    place of its calls before it optimizes the graph, so a step takes no longer.

    What the layers would draw from generators of their own, and masks that tensors
    carry, are lost that way: then they are called one by one.
    """
    first, seed = layers[0], given_seed()
    draws = seed is None and context.get("training")
    masked = any(hasattr(each, "_keras_mask") for each in (x, *context.values()))
    if draws or masked or not tf.inside_function():
        return one_after_another.plain(layers, x, **context)

    @tf.function(autograph=False)
    def apply(x: Tensor, weights: list[Tensor], seed: Tensor | None) -> Tensor:
        with keras.StatelessScope(zip(first.weights, weights, strict=True)):
            if seed is None:
                return first(x, **context)
            with dropout_seed(seed):
                return first(x, **context)

    # Masks of dropout are those of the layers themselves, called one by one.
    salt = salt_of(first.path)
    for layer in layers:
        weights = [ops.cast(v, v.dtype) for v in layer.weights]
        own = seed
        if seed is not None and layer is not first:
            own = salted(seed, salt ^ salt_of(layer.path))
        x = apply(x, weights, own)
    return x
