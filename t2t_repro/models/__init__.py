"""Figure 1: the Transformer whole, step by step, several as one, and its attention."""

from t2t_repro.layers.former_layers import accept_variant
from t2t_repro.models.transformer import Transformer

accept_variant(Transformer)
