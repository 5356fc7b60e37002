"""Dropout (paper section 5.4)."""

from contextvars import ContextVar
from typing import Any

import keras
from keras import ops

from t2t_repro.layers.functional import Tensor

uniform_source: ContextVar[Any] = ContextVar("uniform_source", default=None)
"""Function that draws the uniform numbers in [0, 1) of a mask from the mask's shape and
the layer's path; set by `seeded_dropout`. None: Keras draws the mask."""


@keras.saving.register_keras_serializable("t2t_repro")
class Dropout(keras.layers.Dropout):
    """Keras' dropout, with masks from a given seed inside `dropout_seed`."""

    def call(self, inputs: Tensor, training: bool | None = None) -> Tensor:
        """Drops elements in training and divides the others by 1 - rate.

        Args:
            inputs: float, any shape.
            training: Whether to apply dropout.

        Returns:
            float, the shape of the inputs.
        """
        if not training or not self.rate:
            return inputs
        draw = uniform_source.get()
        if draw is None:
            return super().call(inputs, training=training)
        numbers = draw(ops.shape(inputs), self.path or self.name)
        return ops.where(numbers >= self.rate, inputs * (1.0 / (1.0 - self.rate)), 0)
