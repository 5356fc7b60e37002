"""Compilation cache: XLA's programs and choices of kernels, kept between runs.

TensorFlow stores compiled programs, and XLA the kernels that it chose by measured time.
Neither checks whether a file belongs to the device, so each device, version and set of
flags has a subfolder. Several processes may use one cache: TensorFlow, XLA and this
module write every file under a temporary name and then rename it.
"""

import hashlib
import os
import platform
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

from t2t_repro.system.atomic_file import write_bytes_atomically
from t2t_repro.system.cores import usable_cores
from t2t_repro.system.errors import UserError, format_count
from t2t_repro.system.gpus import driver_devices

KERNELS_FILE = "autotune.txt"
"""File with the kernels that XLA chose, which the next run uses again."""

_PREFIX = "tensorflow-"

# Larger than the number of tensors and functions that a training creates before.
_FIRST_NAME = 2**20


@contextmanager
def compile_cache(
    parent: Path, log: Callable[[str], object], deterministic: bool = False
) -> Iterator[None]:
    """Makes XLA use a cache until the block ends.

    The block must import TensorFlow, which reads the flags in TF_XLA_FLAGS during its
    import. A process can use only one cache.

    Args:
        parent: Folder of the cache; created if it is missing.
        log: Function called with one line about the contents of the cache.
        deterministic: Whether `devices.compute_the_same_bits` is called later.

    Raises:
        UserError: The folder cannot be created or its path contains a quote.
    """
    if "'" in str(parent.resolve()):
        raise UserError(f"--compile_cache {parent}: use a path without '")
    kind, description = _device()
    # TensorFlow's key of a program does not include the flags.
    flags = f"{os.environ.get('XLA_FLAGS')} {deterministic}"
    folder = parent.resolve() / _name(description, flags)
    try:
        others = sorted(path.name for path in parent.glob(f"{_PREFIX}*"))
        # XLA runs these programs, so that other users must not replace them.
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / "kernels").mkdir(exist_ok=True)
        programs = _whole_programs(folder)
    except OSError as error:
        raise UserError(f"--compile_cache {parent}: {error.strerror}") from None
    line = f"--compile_cache: {format_count(programs, 'compiled program')} in {folder}"
    if others and folder.name not in others:
        line += f"; ignoring those of other devices or versions ({', '.join(others)})"
    log(line)
    with tempfile.TemporaryDirectory() as scratch:
        measured = Path(scratch) / KERNELS_FILE
        _add(
            "TF_XLA_FLAGS",
            tf_xla_persistent_cache_directory=folder,
            tf_xla_persistent_cache_device_types=f"{kind},XLA_{kind}_JIT",
        )
        _add(
            "XLA_FLAGS",
            xla_gpu_per_fusion_autotune_cache_dir=folder / "kernels",
            xla_gpu_dump_autotune_results_to=measured,
        )
        if (folder / KERNELS_FILE).exists():
            _add("XLA_FLAGS", xla_gpu_load_autotune_results_from=folder / KERNELS_FILE)
        try:
            yield
        finally:
            # XLA rewrites this file after each compilation, not atomically.
            if measured.exists():
                write_bytes_atomically(folder / KERNELS_FILE, measured.read_bytes())


def trace(function: Any) -> None:
    """Traces a function of a fixed signature with the same names in each run.

    TensorFlow's cache of compiled programs compares the names of functions. They end in
    a counter that every tensor increments, also those of earlier work such as restoring
    a checkpoint.

    Args:
        function: `tf.function` with an input signature.
    """
    from tensorflow.python.framework import ops

    while ops.uid() % _FIRST_NAME:
        pass
    function.get_concrete_function()


def _device() -> tuple[str, str]:
    """Returns the kind, CPU or GPU, and a description of the device and its libraries.

    The first line of the description is the device's name.
    """
    if gpus := driver_devices():
        libraries = sorted(
            f"{library.name} {library.version}"
            for library in metadata.distributions()
            if library.name.startswith("nvidia-")
        )
        return "GPU", "\n".join([*sorted({name for name, _ in gpus}), *libraries])
    info = Path("/proc/cpuinfo")
    text = info.read_text(encoding="utf-8") if info.exists() else ""
    # The names of the instruction sets are "flags" on x86-64 and "Features" on Arm.
    lines = re.findall(r"^(?:model name|flags|Features)\s*:\s*(.*)", text, re.MULTILINE)
    # XLA divides the work of a program by the number of cores.
    described = [*dict.fromkeys(lines), f"{usable_cores()} cores"]
    return "CPU", "\n".join(described if lines else [platform.machine(), *described])


def _name(description: str, flags: str) -> str:
    """Returns the name of the subfolder for a device and XLA's flags."""
    version = metadata.version("tensorflow")
    device = re.sub(r"\W+", "_", description.partition("\n")[0]).strip("_")
    digest = hashlib.sha256(f"{description}\n{flags}".encode()).hexdigest()
    return f"{_PREFIX}{version}-{device}-{digest[:8]}"


def _add(variable: str, **flags: object) -> None:
    """Adds flags to an environment variable; values may contain spaces."""
    texts = [f"--{name}='{value}'" for name, value in flags.items()]
    os.environ[variable] = " ".join([os.environ.get(variable, ""), *texts]).strip()


def _whole_programs(folder: Path) -> int:
    """Returns the number of programs in a cache; removes truncated ones.

    After a power failure, a renamed file may be incomplete. TensorFlow would stop the
    training when it reads such a file.
    """
    whole = 0
    for path in folder.glob("*.pb"):
        if _is_whole(path):
            whole += 1
        else:
            path.unlink(missing_ok=True)
    return whole


def _is_whole(path: Path) -> bool:
    """Returns whether no field of a protocol buffer of strings and messages is cut off.

    Each field consists of a tag (one byte), its length (base 128, lowest digits first,
    128 added to all digits but the last) and its contents.
    """
    at, size = 0, path.stat().st_size
    with open(path, "rb") as file:
        while at < size:
            file.seek(at + 1)
            digits = re.match(rb"[\x80-\xff]*[\x00-\x7f]", file.read(10))
            if digits is None:
                return False
            length = sum((d & 127) << 7 * i for i, d in enumerate(digits[0]))
            at += 1 + len(digits[0]) + length
    return at == size > 0
