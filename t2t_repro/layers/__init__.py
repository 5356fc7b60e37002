"""The building blocks of the Transformer, written in ``keras.ops``."""
