"""The position-wise feed-forward network (paper section 3.3)."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from t2t_repro.layers.dense import Dense
from t2t_repro.layers.dropout import Dropout
from t2t_repro.layers.functional import Shape, Tensor
from t2t_repro.layers.layer import Layer
from t2t_repro.system.dispatch import dispatched

relu = dispatched(ops.relu)


def gelu_sigmoid(x: Tensor) -> Tensor:
    """Computes Marian's GELU up to version 1.12.0, ``x * sigmoid(1.702 x)``."""
    return x * ops.sigmoid(1.702 * x)


# Activation functions that have an optimized implementation or that Keras lacks.
_OURS: dict[str, Any] = {"relu": relu, "gelu_sigmoid": gelu_sigmoid}


@keras.saving.register_keras_serializable("t2t_repro")
class FeedForward(Layer):
    """Feed-forward network ``max(0, x W1 + b1) W2 + b2`` (paper equation (2)).

    Args:
        d_ff: Number of hidden channels.
        dropout: Dropout rate of the hidden channels (tensor2tensor's relu_dropout; the
            paper has none).
        activation: Name of a Keras activation function, or "gelu_sigmoid".

    Attributes:
        activate: The activation function.
        quantized: Function that computes the whole network in int8; None if the model
            is not quantized.

    Raises:
        ValueError: Keras does not have the activation function.
    """

    quantized: Callable[[Tensor], Tensor] | None = None

    def __init__(
        self, d_ff: int, dropout: float = 0.0, activation: str = "relu", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.d_ff = d_ff
        self.dropout, self.activation = dropout, activation
        self.activate = _OURS.get(activation) or keras.activations.get(activation)
        self.hidden = Dense(d_ff, use_bias=True, name="hidden", dtype=self.dtype_policy)
        self.drop = Dropout(dropout, name="dropout", dtype=self.dtype_policy)

    def build(self, input_shape: Shape) -> None:
        """Creates both projections."""
        width, policy = input_shape[-1], self.dtype_policy
        self.output_projection = Dense(width, True, name="output", dtype=policy)
        self.hidden.build(input_shape)
        self.output_projection.build((*input_shape[:-1], self.d_ff))
        self.drop.build((*input_shape[:-1], self.d_ff))

    def call(self, x: Tensor, training: bool | None = None) -> Tensor:
        """Applies the network to each position of float (..., d_model)."""
        if self.quantized is not None:
            return self.quantized(x)
        hidden = self.activate(self.hidden(x))
        return self.output_projection(self.drop(hidden, training=training))
