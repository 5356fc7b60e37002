"""Dropout (paper section 5.4)."""

from contextvars import ContextVar
from typing import Any

import keras
from keras import ops

from t2t_repro.layers.functional import Tensor

uniform_source: ContextVar[Any] = ContextVar("uniform_source", default=None)
"""Function that draws the numbers of a mask, from 0 to less than 1, by its shape and
the layer's path; `seeded_dropout` sets it. None: Keras draws the mask."""


@keras.saving.register_keras_serializable("t2t_repro")
class Dropout(keras.layers.Dropout):
    """Dropout: Keras' own, except inside `dropout_seed`."""

    def call(self, inputs: Tensor, training: bool | None = None) -> Tensor:
        """Drops elements in training; those that stay are divided by 1 - rate.

        Args:
            inputs: float, any shape.
            training: whether to drop.

        Returns:
            Like the inputs.
        """
        if not training or not self.rate:
            return inputs
        draw = uniform_source.get()
        if draw is None:
            return super().call(inputs, training=training)
        drawn = draw(ops.shape(inputs), self.path or self.name)
        return ops.where(drawn >= self.rate, inputs * (1.0 / (1.0 - self.rate)), 0)
