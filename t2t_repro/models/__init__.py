"""Figure 1: the Transformer whole, step by step, several as one, and its attention."""

from t2t_repro.layers.former_layers import let_keras_read_a_variant
from t2t_repro.models.transformer import Transformer

let_keras_read_a_variant(Transformer)
