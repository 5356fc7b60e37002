"""The position-wise feed-forward network (paper section 3.3)."""

from typing import Any

import keras
from keras import ops

from t2t_repro.layers.dense import Dense
from t2t_repro.layers.dropout import Dropout
from t2t_repro.layers.typing import Tensor


class FeedForward(keras.layers.Layer):
    """``max(0, x W1 + b1) W2 + b2`` (paper equation (2)).

    Args:
        d_model: channels of the input and the output.
        d_ff: channels of the hidden layer.
        dropout: the share of hidden units dropped (tensor2tensor's relu_dropout;
            the paper has none).
    """

    def __init__(
        self, d_model: int, d_ff: int, dropout: float = 0.0, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.d_model = d_model
        self.d_ff = d_ff
        policy = self.dtype_policy
        self.hidden = Dense(d_ff, use_bias=True, name="hidden", dtype=policy)
        self.output_projection = Dense(
            d_model, use_bias=True, name="output", dtype=policy
        )
        self.dropout = Dropout(dropout, name="dropout", dtype=policy)

    def build(self) -> None:
        """Creates both linear maps."""
        self.hidden.build((None, None, self.d_model))
        self.output_projection.build((None, None, self.d_ff))
        self.dropout.build()
        self.built = True

    def call(self, x: Tensor, seed: Tensor | None = None) -> Tensor:
        """Applies the network to each position.

        Args:
            x: float (rows, d_model), a row for each position.
            seed: int32 (2,) for dropout, or None at inference.

        Returns:
            float (rows, d_model).
        """
        hidden = ops.relu(self.hidden(x))
        return self.output_projection(self.dropout(hidden, seed))
