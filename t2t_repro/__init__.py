"""The Transformer of "Attention Is All You Need" on today's TensorFlow and Keras.

Importing this package imports neither TensorFlow nor Keras, so that the commands
can answer `--help` and a mistyped flag at once.
"""

import os
import platform

if platform.machine() == "x86_64":
    # TensorFlow reads it when it is imported. By itself it takes oneDNN's operations
    # on processors with AVX512-VNNI and later ones only; with AVX2 alone they are the
    # faster ones, too (docs/speed.md). Whoever has set it is left alone.
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")

__version__ = "0.1.0"
