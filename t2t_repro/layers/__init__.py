"""The layers of section 3 of the paper, as Keras layers for every backend.

Tensors are (batch, length, channels), and boolean masks are true at visible positions.
`t2t_repro.fast` has optimized implementations of some functions in this package.
"""

from t2t_repro.layers.add_and_norm import LayerNormalization, Residual
from t2t_repro.layers.attention import MultiHeadAttention
from t2t_repro.layers.dense import Dense
from t2t_repro.layers.dropout import Dropout
from t2t_repro.layers.embedding import TargetSpace, TokenEmbedding
from t2t_repro.layers.feed_forward import FeedForward
from t2t_repro.layers.local_attention import LocalAttention
from t2t_repro.layers.masks import causal_mask, padding_mask
from t2t_repro.layers.position import LearnedPosition, PositionalEncoding
from t2t_repro.layers.relative import RelativeAttention
from t2t_repro.layers.seeded_dropout import dropout_seed
from t2t_repro.layers.stacks import Decoder, DecoderLayer, Encoder, EncoderLayer

__all__ = [
    "Decoder",
    "DecoderLayer",
    "Dense",
    "Dropout",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "LayerNormalization",
    "LearnedPosition",
    "LocalAttention",
    "MultiHeadAttention",
    "PositionalEncoding",
    "RelativeAttention",
    "Residual",
    "TargetSpace",
    "TokenEmbedding",
    "causal_mask",
    "dropout_seed",
    "padding_mask",
]
