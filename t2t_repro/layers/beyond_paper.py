"""What the paper's model does not have and other programs' models do, as layers.

They take the places of the paper's by a `Variant`. Sources: Marian,
src/models/transformer.h; https://marian-nmt.github.io. OpenNMT-tf, opennmt/layers.
"""

from typing import Any

import keras
from keras import ops

from t2t_repro.layers.add_and_norm import LayerNormalization, Residual
from t2t_repro.layers.attention import MultiHeadAttention
from t2t_repro.layers.dense import Dense
from t2t_repro.layers.embedding import TokenEmbedding
from t2t_repro.layers.feed_forward import FeedForward
from t2t_repro.layers.functional import Shape, Tensor
from t2t_repro.layers.local_attention import LocalAttention
from t2t_repro.layers.position import FORMULAS, sinusoid, sinusoid_paper
from t2t_repro.layers.relative import RelativeAttention

ACTIVATIONS = {
    "relu": ops.relu,
    "swish": ops.silu,
    "gelu": lambda x: ops.gelu(x, approximate=False),
    "gelu_sigmoid": lambda x: x * ops.sigmoid(1.702 * x),
}
"""The last is an approximation of GELU, which Marian had up to version 1.12.0."""

RULED_OUT = -1e4
"""A logit whose probability is 0 beside any other; 16 bits hold it, too."""


class _Biased:
    """Makes the projections of an attention with biases."""

    dtype_policy: Any

    def projection(self, units: int, name: str) -> Dense:
        return Dense(units, use_bias=True, name=name, dtype=self.dtype_policy)


@keras.saving.register_keras_serializable("t2t_repro")
class BiasedAttention(_Biased, MultiHeadAttention):
    """`MultiHeadAttention` whose four projections have biases."""


@keras.saving.register_keras_serializable("t2t_repro")
class BiasedRelativeAttention(_Biased, RelativeAttention):
    """`RelativeAttention` whose four projections have biases."""


@keras.saving.register_keras_serializable("t2t_repro")
class BiasedNeighbourhoodAttention(_Biased, LocalAttention):
    """`LocalAttention` whose four projections have biases."""


@keras.saving.register_keras_serializable("t2t_repro")
class ActivatedFeedForward(FeedForward):
    """``f(x W1 + b1) W2 + b2``, where the paper's f is ``max(0, x)``.

    Args:
        d_ff: channels of the hidden layer.
        dropout: the share of hidden units dropped.
        activation: f, a key of `ACTIVATIONS`.
        **kwargs: those of every layer.

    Raises:
        ValueError: there is no such activation.
    """

    def __init__(
        self, d_ff: int, dropout: float = 0.0, *, activation: str, **kwargs: Any
    ) -> None:
        super().__init__(d_ff, dropout, **kwargs)
        if activation not in ACTIVATIONS:
            known = ", ".join(ACTIVATIONS)
            raise ValueError(f"activation {activation!r}: use one of {known}")
        self.activation = activation

    def call(self, x: Tensor, training: bool | None = None) -> Tensor:
        """Applies the network to each position of float (..., d_model)."""
        hidden = ACTIVATIONS[self.activation](self.hidden(x))
        return self.output_projection(self.drop(hidden, training=training))


@keras.saving.register_keras_serializable("t2t_repro")
class EpsilonNormalization(LayerNormalization):
    """`LayerNormalization` with an epsilon of its own.

    Args:
        epsilon: added to the variance.
        **kwargs: those of every layer.
    """

    def __init__(self, epsilon: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.epsilon = epsilon


@keras.saving.register_keras_serializable("t2t_repro")
class EpsilonResidual(Residual):
    """`Residual` whose normalisation has an epsilon of its own.

    Args:
        dropout: P_drop of the sub-layer's output.
        norm: "post" or "pre".
        epsilon: added to the variance.
        **kwargs: those of every layer.
    """

    def __init__(
        self, dropout: float = 0.0, norm: str = "post", *, epsilon: float, **kwargs: Any
    ) -> None:
        super().__init__(dropout, norm, **kwargs)
        self.epsilon = self.layer_norm.epsilon = epsilon


@keras.saving.register_keras_serializable("t2t_repro")
class BiasedEmbedding(TokenEmbedding):
    """`TokenEmbedding` whose logits have a bias of each symbol.

    That of PAD, as of any symbol that no text has, rules it out.
    """

    def build(self, input_shape: object = None) -> None:
        """Creates the table and the bias."""
        super().build(input_shape)
        self.bias = self.add_weight(
            name="bias", shape=(self.vocab_size,), initializer=_all_but_padding
        )

    def call(self, inputs: Tensor, reverse: bool = False) -> Tensor:
        """Embeds symbols, or makes logits of vectors; see `TokenEmbedding`."""
        y = super().call(inputs, reverse)
        return ops.add(y, ops.cast(self.bias, y.dtype)) if reverse else y


class _Started:
    """Makes an embedding read the row of a symbol in the place of PAD.

    The decoder's input is shifted by PAD, so that the symbol stands before the first.
    What pads a batch is not seen, whatever its embedding.

    Args:
        vocab_size: V, PAD (0) and EOS (1) included.
        d_model: the number of channels.
        scale: whether embeddings are multiplied by sqrt(d_model).
        start_symbol: the id of the symbol.
        **kwargs: those of `TokenEmbedding`.
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        scale: bool = True,
        *,
        start_symbol: int,
        **kwargs: Any,
    ) -> None:
        super().__init__(vocab_size, d_model, scale, **kwargs)  # type: ignore[call-arg]
        self.start_symbol = start_symbol

    def call(self, inputs: Tensor, reverse: bool = False) -> Tensor:
        if not reverse:
            inputs = ops.where(ops.equal(inputs, 0), self.start_symbol, inputs)
        return super().call(inputs, reverse)  # type: ignore[misc]


@keras.saving.register_keras_serializable("t2t_repro")
class StartEmbedding(_Started, TokenEmbedding):
    """`TokenEmbedding` with a start symbol, where the paper's has a vector of zeros."""


@keras.saving.register_keras_serializable("t2t_repro")
class BiasedStartEmbedding(_Started, BiasedEmbedding):
    """`BiasedEmbedding` with a start symbol, too."""


def _all_but_padding(shape: Shape, dtype: Any = None) -> Tensor:
    """Makes a bias that gives PAD no probability, and else zeros."""
    return ops.cast(ops.arange(shape[0]) == 0, dtype) * RULED_OUT


def sinusoid_halves(positions: Tensor, d_model: int) -> Tensor:
    """The paper's frequencies in tensor2tensor's order: all sines, then all cosines.

    Transformers and CTranslate2 give it to Marian's models (transformers
    modeling_marian.py:MarianSinusoidalPositionalEmbedding).

    Args:
        positions: int32 (..., length), counted from 0.
        d_model: the number of channels, even.

    Returns:
        float32 (..., length, d_model).
    """
    pairs = sinusoid_paper(positions, d_model)
    return ops.concatenate([pairs[..., 0::2], pairs[..., 1::2]], axis=-1)


def sinusoid_from_one(positions: Tensor, d_model: int) -> Tensor:
    """`sinusoid` of positions counted from 1, as OpenNMT-tf's (layers/position.py).

    Args:
        positions: int32 (..., length), counted from 0.
        d_model: the number of channels.

    Returns:
        float32 (..., length, d_model).
    """
    return sinusoid(positions + 1, d_model)


FORMULAS["sinusoid_halves"] = sinusoid_halves
FORMULAS["sinusoid_from_one"] = sinusoid_from_one
