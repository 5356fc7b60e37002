"""A GPU that is there and cannot be used is told, with the cause and what helps."""

import os
import subprocess
import sys
from glob import glob

DEVICE_FILES = "/dev/nvidia[0-9]*"
"""Where NVIDIA's driver shows its GPUs; tests name other files."""

_LIST = "import tensorflow as tf; tf.config.list_physical_devices('GPU')"
# What TensorFlow 2.21 logs -> what helps; each provoked, by libraries that answer as
# a driver's do. Its "Could not find cuda drivers" is of CUDA's runtime, driver or not.
_CAUSES = {
    "Cannot dlopen some GPU libraries": 'pip install "t2t_repro[cuda]"',
    # There is no libcuda.so.1 to call.
    "cuInit: UNKNOWN ERROR (303)": "install NVIDIA's driver (in a container, run it "
    "with --gpus all)",
    "failed call to cuInit": "NVIDIA's driver does not answer; see nvidia-smi",
}


def are_there() -> bool:
    """Says whether the machine shows GPUs that nobody hid from CUDA."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0")
    return visible not in ("", "-1") and bool(glob(DEVICE_FILES))


def why_unused() -> str | None:
    """Returns a line on a GPU that TensorFlow, imported already, cannot use, or None.

    The cause is in what a process of its own logs, for here such lines are not shown.
    """
    import tensorflow as tf

    if not are_there() or tf.config.list_physical_devices("GPU"):
        return None
    if not tf.test.is_built_with_cuda():
        cause, remedy = "TensorFlow was built without CUDA", "pip install tensorflow"
    else:
        logged = subprocess.run(
            [sys.executable, "-c", _LIST],
            env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "0"},
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        ).stderr
        found = [sign for sign in _CAUSES if sign in logged]
        cause = next(
            (line for line in logged.splitlines() if found and found[0] in line),
            "TensorFlow does not say why",
        ).rpartition("] ")[2]
        remedy = _CAUSES[found[0]] if found else "see what --verbose shows"
    names = ", ".join(sorted(glob(DEVICE_FILES)))
    return f"a GPU is there ({names}) but not used: {cause.rstrip('. ')}; {remedy}"
