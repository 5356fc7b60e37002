"""The Transformer (figure 1), cached decoding, ensembles and attention maps."""
