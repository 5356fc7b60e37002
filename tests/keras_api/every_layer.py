"""Small examples of all public layers and their inputs.

In names such as `LocalAttention use_bias`, the second word is the option that is set.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import keras
import numpy as np

from t2t_repro import layers
from tests.arrays import random

SIZES = {"num_heads": 2, "d_k": 4, "d_v": 5, "d_ff": 12}
# Written out because Keras' serialization imports TensorFlow, even for other backends.
NEARBY = {"class_name": "t2t_repro>LocalAttention", "config": {"radius": 2}}


class Case(NamedTuple):
    """Layer and the arguments of its call.

    Attributes:
        make: Function that creates the layer from keyword arguments such as the name.
        inputs: Positional arguments of the call.
        options: Keyword arguments of the call.
        width: Channels of the output.
    """

    make: Callable[..., keras.layers.Layer]
    inputs: list[np.ndarray]
    options: Mapping[str, Any] = MappingProxyType({})
    width: int = 8


def attention(kind: type[keras.layers.Layer], **sizes: Any) -> Callable[..., Any]:
    """Returns a function that creates an attention of two heads with three channels."""
    return lambda **options: kind(2, 3, 3, **sizes, **options)


X, MEMORY, IDS = random(2, 6, 8), random(2, 5, 8, seed=1), np.array([[5, 1, 0]] * 2)
SEEN = np.array([[[1, 1, 1, 1, 1]], [[1, 1, 1, 0, 0]]], bool)

CASES = {
    "MultiHeadAttention": Case(
        lambda **options: layers.MultiHeadAttention(2, 4, 5, **options),
        [X, MEMORY],
        {"attention_mask": SEEN},
    ),
    "RelativeAttention": Case(
        attention(layers.RelativeAttention, max_relative_position=3), [X, X]
    ),
    "LocalAttention": Case(
        attention(layers.LocalAttention, radius=2),
        [X, X],
        {"use_causal_mask": True},
    ),
    "MultiHeadAttention use_bias": Case(
        lambda **options: layers.MultiHeadAttention(2, 4, 5, use_bias=True, **options),
        [X, MEMORY],
        {"attention_mask": SEEN},
    ),
    "RelativeAttention use_bias": Case(
        attention(layers.RelativeAttention, max_relative_position=3, use_bias=True),
        [X, X],
    ),
    "LocalAttention use_bias": Case(
        attention(layers.LocalAttention, radius=2, use_bias=True),
        [X, X],
        {"use_causal_mask": True},
    ),
    "Dense": Case(
        lambda **options: layers.Dense(7, use_bias=True, **options), [X], width=7
    ),
    "Dropout": Case(lambda **options: layers.Dropout(0.3, **options), [X]),
    "FeedForward": Case(lambda **options: layers.FeedForward(9, 0.1, **options), [X]),
    "FeedForward activation": Case(
        lambda **options: layers.FeedForward(9, activation="gelu", **options), [X]
    ),
    "LayerNormalization": Case(layers.LayerNormalization, [X]),
    "LayerNormalization epsilon": Case(
        lambda **options: layers.LayerNormalization(0.1, **options), [X]
    ),
    "Residual epsilon": Case(
        lambda **options: layers.Residual(0.1, epsilon=0.1, **options),
        [X],
        {"sublayer": keras.ops.tanh},
    ),
    "Residual": Case(
        lambda **options: layers.Residual(0.1, "pre", **options),
        [X],
        {"sublayer": keras.ops.tanh},
    ),
    "TokenEmbedding": Case(
        lambda **options: layers.TokenEmbedding(11, 8, **options), [IDS]
    ),
    "TokenEmbedding use_bias": Case(
        lambda **options: layers.TokenEmbedding(11, 8, use_bias=True, **options), [IDS]
    ),
    "TokenEmbedding start_symbol": Case(
        lambda **options: layers.TokenEmbedding(11, 8, start_symbol=4, **options), [IDS]
    ),
    "TargetSpace": Case(lambda **options: layers.TargetSpace(3, **options), [X]),
    "LearnedPosition": Case(
        lambda **options: layers.LearnedPosition(4, **options), [X]
    ),
    "PositionalEncoding": Case(
        lambda **options: layers.PositionalEncoding("sinusoid_paper", **options), [X]
    ),
    "EncoderLayer": Case(
        lambda **options: layers.EncoderLayer(
            **SIZES, self_attention=NEARBY, **options
        ),
        [X],
    ),
    "DecoderLayer": Case(
        lambda **options: layers.DecoderLayer(**SIZES, norm="pre", **options),
        [X, MEMORY],
        {"cross_attention_mask": SEEN},
    ),
    "Encoder": Case(
        lambda **options: layers.Encoder(
            2, "pre", **SIZES, max_relative_position=2, **options
        ),
        [X],
    ),
    "Decoder": Case(
        lambda **options: layers.Decoder(2, **SIZES, **options), [X, MEMORY]
    ),
}


def called(name: str) -> tuple[keras.layers.Layer, Any]:
    """Creates a layer and calls it; returns the layer and its output."""
    case = CASES[name]
    layer = case.make(name="layer")
    return layer, layer(*case.inputs, **case.options)
