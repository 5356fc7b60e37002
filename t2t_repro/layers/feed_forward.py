"""The position-wise feed-forward network (paper section 3.3)."""

from typing import Any

import keras

from t2t_repro.layers.dense import Dense
from t2t_repro.layers.dropout import Dropout
from t2t_repro.layers.functional import Shape, Tensor, relu
from t2t_repro.layers.layer import Layer


@keras.saving.register_keras_serializable("t2t_repro")
class FeedForward(Layer):
    """``max(0, x W1 + b1) W2 + b2`` (paper equation (2)).

    Args:
        d_ff: channels of the hidden layer.
        dropout: the share of hidden units dropped (tensor2tensor's relu_dropout;
            the paper has none).
    """

    def __init__(self, d_ff: int, dropout: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.d_ff = d_ff
        self.dropout = dropout
        policy = self.dtype_policy
        self.hidden = Dense(d_ff, use_bias=True, name="hidden", dtype=policy)
        self.drop = Dropout(dropout, name="dropout", dtype=policy)

    def build(self, input_shape: Shape) -> None:
        """Creates both linear maps."""
        self.output_projection = Dense(
            input_shape[-1], use_bias=True, name="output", dtype=self.dtype_policy
        )
        self.hidden.build(input_shape)
        self.output_projection.build((*input_shape[:-1], self.d_ff))
        self.drop.build((*input_shape[:-1], self.d_ff))

    def call(self, x: Tensor, training: bool | None = None) -> Tensor:
        """Applies the network to each position of float (..., d_model)."""
        hidden = relu(self.hidden(x))
        return self.output_projection(self.drop(hidden, training=training))
