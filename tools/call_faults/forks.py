"""Calls functions in forks of a process that has imported TensorFlow.

The fork server preloads the library of `calls.c`, so that one system call of a function
can fail, or all its changes of files can be recorded.
"""

import ctypes
import gc
import importlib
import multiprocessing
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from t2t_repro.command_line import cli

ROOT = Path(__file__).resolve().parents[2]
HANGS = -1
_CONTEXT = multiprocessing.get_context("forkserver")
_SOURCE = Path(__file__).with_name("calls.c")
_COMPILE = ("gcc", "-O1", "-shared", "-fPIC", str(_SOURCE), "-ldl", "-o")
_IMPORTED = (
    *("tensorflow", "tensorflow_text", "call_faults.forks"),
    *("t2t_repro.datagen", "t2t_repro.export", "t2t_repro.training.procedure"),
    *("t2t_repro.interop.import_model", "t2t_repro.translation.build"),
)
_LONGEST_PATH = 4096 + 16  # As in calls.c.
_TIMEOUT = 300


class Result(NamedTuple):
    """Result of a function.

    Attributes:
        status: Exit status of the fork; `HANGS` if it did not end in time.
        err: Standard error.
        calls: Number of calls on the watched files.
        failed: Name and path of the call that failed; "" if none did.
    """

    status: int
    err: str
    calls: int = 0
    failed: str = ""


def start_server(folder: Path) -> None:
    """Compiles the library to a folder and starts the fork server with it."""
    library = str(folder / "calls.so")
    subprocess.run([*_COMPILE, library], check=True)
    os.environ |= {
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tools'}",
        "LD_PRELOAD": library,
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "CUDA_VISIBLE_DEVICES": "-1",
        "KERAS_BACKEND": "tensorflow",
    }
    _CONTEXT.set_forkserver_preload(list(_IMPORTED))
    run(folder, gc.collect)
    del os.environ["LD_PRELOAD"]


def run(
    folder: Path,
    function: Callable[..., object],
    *arguments: Any,
    number: int = 0,
    error: int = 0,
    log: Path | None = None,
) -> Result:
    """Calls a function in a fork, whose current folder is the watched one.

    Args:
        folder: Absolute path of the watched folder.
        function: Function of a module.
        *arguments: Arguments of the function.
        number: Number of the system call that fails, from 1; 0: none.
        error: Value of errno for this call.
        log: File for the recorded calls; None: they are not recorded.
    """
    ours, theirs = _CONTEXT.Pipe()
    settings = theirs, folder, number, error, log
    process = _CONTEXT.Process(target=_call, args=(settings, function, arguments))
    process.start()
    theirs.close()
    process.join(_TIMEOUT)
    if process.exitcode is None:
        process.kill()
        return Result(HANGS, "")
    try:
        return Result(process.exitcode, *ours.recv())
    except EOFError:  # A signal has ended it.
        return Result(process.exitcode, "")


def run_command(name: str, *arguments: str) -> None:
    """Runs a command, named by its module, in this process and exits."""
    cli.run(importlib.import_module(name).main, arguments)


def _call(
    settings: tuple[Connection, Path, int, int, Path | None],
    function: Callable[..., object],
    arguments: Sequence[Any],
) -> None:
    """Calls a function in the fork; see `run`."""
    pipe, folder, number, error, log = settings
    gc.freeze()
    os.chdir(folder)
    err = os.memfd_create("err")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(err, 2)
    sys.stdout, sys.stderr = (open(n, "w", 1, closefd=False) for n in (1, 2))  # noqa: SIM115
    library = ctypes.CDLL(None)
    journal = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND) if log else -1
    library.watch(os.fsencode(folder), number, error, journal)
    try:
        function(*arguments)
    except Exception:
        traceback.print_exc()
        sys.exit(1)
    finally:
        calls = ctypes.c_long.in_dll(library, "calls").value
        failed = (ctypes.c_char * _LONGEST_PATH).in_dll(library, "failed").value
        library.watch(b"", 0, 0, -1)
        text = os.pread(err, 1 << 20, 0).decode(errors="replace")
        pipe.send((text, calls, os.fsdecode(failed)))
