"""The Transformer (figure 1), cached decoding, ensembles and attention maps."""

from t2t_repro.layers.former_layers import accept_variant
from t2t_repro.models.transformer import Transformer

accept_variant(Transformer)
