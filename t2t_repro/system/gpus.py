"""GPUs according to NVIDIA's driver, and why TensorFlow cannot use them."""

import ctypes
import os
import subprocess
import sys
from glob import glob

DEVICE_FILES = "/dev/nvidia[0-9]*"
"""Glob pattern of the device files of NVIDIA's driver; tests replace it."""

_LIST = "import tensorflow as tf; tf.config.list_physical_devices('GPU')"
# TensorFlow 2.21's log line -> remedy. Each line was reproduced with a fake driver
# library. "Could not find cuda drivers" is not listed: TensorFlow logs it whenever
# CUDA's runtime is missing, with or without a driver.
_REMEDIES = {
    "Cannot dlopen some GPU libraries": 'pip install "tensorflow[and-cuda]"',
    # libcuda.so.1 is missing.
    "cuInit: UNKNOWN ERROR (303)": "install NVIDIA's driver (in a container, run it "
    "with --gpus all)",
    "failed call to cuInit": "NVIDIA's driver does not answer; see nvidia-smi",
}


def are_visible() -> bool:
    """Returns whether the machine has GPUs that CUDA_VISIBLE_DEVICES does not hide."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0")
    return visible not in ("", "-1") and bool(glob(DEVICE_FILES))


def driver_devices() -> list[tuple[str, int]]:
    """Returns name and memory in bytes of each GPU that CUDA's driver makes available.

    The list is empty without a GPU and if the driver cannot be queried.
    """
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return []
    count = ctypes.c_int()
    if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)):
        return []
    devices = []
    for index in range(count.value):
        device, size = ctypes.c_int(), ctypes.c_size_t()
        name = ctypes.create_string_buffer(256)
        if (
            cuda.cuDeviceGet(ctypes.byref(device), index)
            or cuda.cuDeviceGetName(name, len(name), device)
            or cuda.cuDeviceTotalMem_v2(ctypes.byref(size), device)
        ):
            return []
        devices.append((name.value.decode(errors="replace"), size.value))
    return devices


def unused_reason() -> str | None:
    """Returns one line that explains why TensorFlow cannot use a GPU, with a remedy.

    Returns None without a GPU, or if TensorFlow can use it. The cause comes from the
    log of a subprocess that imports TensorFlow, because this process suppresses it.
    """
    import tensorflow as tf

    if not are_visible() or tf.config.list_physical_devices("GPU"):
        return None
    if not tf.test.is_built_with_cuda():
        cause, remedy = "TensorFlow was built without CUDA", "pip install tensorflow"
    else:
        log = subprocess.run(
            [sys.executable, "-c", _LIST],
            env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "0"},
            capture_output=True,
            text=True,
            errors="replace",
        ).stderr
        lines = log.splitlines()
        known = ((line, text) for text in _REMEDIES for line in lines if text in line)
        line, text = next(known, ("TensorFlow logs no known cause", ""))
        cause = line.rpartition("] ")[2]
        remedy = _REMEDIES.get(text, "run again with --verbose")
    names = ", ".join(sorted(glob(DEVICE_FILES)))
    return f"cannot use the GPU ({names}): {cause.rstrip('. ')}; {remedy}"
