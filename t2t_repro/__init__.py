"""The Transformer of "Attention Is All You Need" on today's TensorFlow and Keras.

Importing this package imports neither TensorFlow nor Keras, so that the commands
can answer `--help` and a mistyped flag at once.
"""

__version__ = "0.1.0"
