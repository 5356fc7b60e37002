"""Tokenizers as TensorFlow operations, and vocabulary files."""
