"""A GPU that is there, but not for TensorFlow."""

import os
import re
import subprocess
import sys
from pathlib import Path

DRIVER_FILES = (Path("/dev/nvidia0"), Path("/proc/driver/nvidia/version"))
"""What NVIDIA's driver makes where there is a GPU."""

# What TensorFlow says of a library, or of a driver, that it cannot use.
_CAUSE = re.compile(
    r"[^\]]*(?:dynamic library|dlopen|cuda drivers|cuInit|CUDA_ERROR).*", re.IGNORECASE
)
_LONGEST_CAUSE = 300


def why_unused() -> str | None:
    """Says in one line why TensorFlow uses no GPU, where the driver has one.

    None: there is none, it is hidden on purpose, or TensorFlow uses it.
    """
    import tensorflow as tf

    hidden = os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1")
    there = next((path for path in DRIVER_FILES if path.exists()), None)
    if hidden or there is None or tf.config.list_physical_devices("GPU"):
        return None
    # TensorFlow reads how much to say when it is imported, so another process asks.
    asked = subprocess.run(
        [
            *(sys.executable, "-c"),
            "import tensorflow as tf; tf.config.list_physical_devices('GPU')",
        ],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    # Behind the place in TensorFlow's source: "... cudart_stub.cc:31] Could not ...".
    said = [line.rpartition("] ")[2] for line in asked.stderr.splitlines()]
    causes = dict.fromkeys(line.strip() for line in said if _CAUSE.fullmatch(line))
    cause = " ".join(causes)[:_LONGEST_CAUSE] or "TensorFlow does not say why"
    return (
        f"no GPU is used although there is one ({there}): {cause} "
        '(pip install "t2t_repro[cuda]" brings the libraries; the driver is the '
        "system's)"
    )
