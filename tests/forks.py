"""Runs functions and programs in forks of a process that has imported TensorFlow.

Importing TensorFlow takes four seconds, most of the time of a small command, and a
process can have only one distribution strategy. `multiprocessing` starts a server that
imports TensorFlow and two other slow libraries once, and forks for each process.

Programs that receive signals, that test the import itself, or that must not find
TensorFlow imported, use `sys.executable`.
"""

import functools
import gc
import multiprocessing
import os
import runpy
import sys
import tempfile
import threading
import time
import types
from collections.abc import Callable, Mapping
from multiprocessing import connection, reduction
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
_PYTHON = sys.executable
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tensorflow", "tensorflow_text", "sacremoses"])
# Two threads must not read the status of one process.
_STATUS = threading.Lock()
_FIXED = ("TF_CPP_", "TF_ENABLE_", "LD_", "MALLOC_", "GLIBC_", "OMP_", "PYTHONHASHSEED")
"""Beginnings of the environment variables that are read during the imports."""
_CLIENT = """#!{python} -IS
import os, sys
from multiprocessing import connection, reduction
fixed = {{k: v for k, v in os.environ.items() if k.startswith({names!r})}}
begins = sys.argv[1] if len(sys.argv) > 1 else "-"
runs = begins in ("-m", "-c") or not begins.startswith("-")
if not runs or fixed != {fixed!r}:
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
server = connection.Client({address!r})
server.send([sys.argv[1:], os.getcwd(), dict(os.environ)])
for stream in (0, 1, 2):
    reduction.send_handle(server, stream, None)
    os.close(stream)
os._exit(server.recv() % 256)
"""


class Done(NamedTuple):
    """Result of a process.

    Attributes:
        status: Exit status.
        out: Standard output.
        err: Standard error.
    """

    status: int
    out: str
    err: str


class Forks:
    """Function calls that run at the same time, each in its own process.

    Args:
        function: Function of a module.
        *calls: Arguments of each call.
        environments: Environment variables of each process; None: no changes.
        **environment: Environment variables of all processes.
    """

    def __init__(
        self,
        function: Callable[..., None],
        *calls: tuple[Any, ...],
        environments: list[dict[str, str]] | None = None,
        **environment: str,
    ) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._processes = {}
        own = environments or [{}] * len(calls)
        for number, (arguments, variables) in enumerate(zip(calls, own, strict=True)):
            path = f"{self._folder.name}/{number}"
            variables = {**os.environ, **environment, **variables}
            process = _start(_call, path, variables, function, arguments)
            self._processes[path] = process

    def finish(self, timeout: float = 240) -> list[Done]:
        """Waits for the processes and returns their results; kills them on failure.

        Args:
            timeout: Time limit in seconds.
        """
        end = time.monotonic() + timeout
        results = []
        for path, process in self._processes.items():
            finished = connection.wait([process.sentinel], end - time.monotonic())
            texts = (Path(f"{path}.{stream}").read_text() for stream in ("out", "err"))
            results.append(Done(_status(process), *texts))
            if not finished:
                for each in self._processes.values():
                    each.kill()
                raise AssertionError(results[-1].err)
        self._folder.cleanup()
        return results


def run(function: Callable[..., None], *calls: tuple[Any, ...], **options: Any) -> Any:
    """Runs `Forks` to the end; returns a list of `Done`."""
    return Forks(function, *calls, **options).finish()


@functools.cache
def python() -> str:
    """Returns the path of a substitute for `python` that runs programs in forks.

    It runs `-m`, `-c` or a file as `python` would, with its own streams, folder and
    variables. It starts `sys.executable` for other options, and for other variables
    that are read during the imports.
    """
    listener = connection.Listener(family="AF_UNIX", backlog=64)
    # In the temporary folder of multiprocessing, which is deleted at exit.
    path = Path(listener.address).with_name("python")
    fixed = {k: v for k, v in os.environ.items() if k.startswith(_FIXED)}
    text = _CLIENT.format(
        python=_PYTHON, address=listener.address, names=_FIXED, fixed=fixed
    )
    path.write_text(text, encoding="utf-8")
    path.chmod(0o700)
    threading.Thread(target=_serve, args=[listener], daemon=True).start()
    return str(path)


def _start(function: Callable[..., None], *arguments: Any) -> BaseProcess:
    process = _CONTEXT.Process(target=function, args=arguments, daemon=True)
    with _STATUS:
        process.start()
    return process


def _status(process: BaseProcess) -> Any:
    """Returns the exit status of a process; None if it runs."""
    with _STATUS:
        return process.exitcode


def _serve(listener: connection.Listener) -> None:
    """Runs the programs of all clients."""
    while True:
        threading.Thread(
            target=_run_program, args=[listener.accept()], daemon=True
        ).start()


def _run_program(client: Connection) -> None:
    """Runs the program of a client in a fork, and kills it if the client is killed."""
    with client:
        job = client.recv()
        streams = [Connection(reduction.recv_handle(client)) for _ in range(3)]
        process = _start(_execute, python(), streams, *job)
        for stream in streams:
            stream.close()
        if client in connection.wait([client, process.sentinel]):
            process.kill()
        else:
            client.send(_status(process))


def _call(
    path: str,
    variables: Mapping[str, str],
    function: Callable[..., None],
    arguments: tuple[Any, ...],
) -> None:
    """Calls a function in a fork; writes its output to files."""
    gc.freeze()
    for number, stream in enumerate(("out", "err"), 1):
        os.dup2(os.open(f"{path}.{stream}", os.O_WRONLY | os.O_CREAT), number)
    os.environ.update(variables)
    function(*arguments)


def _execute(
    executable: str,
    streams: list[Connection],
    arguments: list[str],
    folder: str,
    variables: Mapping[str, str],
) -> None:
    """Runs a program in a fork as `python` would."""
    gc.freeze()
    for number, stream in enumerate(streams):
        os.dup2(stream.fileno(), number)
        stream.close()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update({"TF2_BEHAVIOR": "1", **variables})
    encoding = os.environ.get("PYTHONIOENCODING", "utf-8")
    sys.stdin = open(0, encoding=encoding, closefd=False)  # noqa: SIM115
    sys.stdout, sys.stderr = (
        open(number, "w", size, encoding, closefd=False)  # noqa: SIM115
        for number, size in ((1, -1), (2, 1))
    )
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    sys.executable = executable
    kind, *rest = arguments
    ours = ("", str(ROOT), str(ROOT / "tools"))
    kept = [path for path in sys.path if path not in ours]
    paths = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    first = {"-m": folder, "-c": ""}.get(kind, str(Path(kind).resolve().parent))
    sys.path[:] = [first, *paths, *kept]
    del sys.modules["tests.forks"], sys.modules["tests"]
    sys.argv = [kind, *rest[1:]] if kind in ("-m", "-c") else arguments
    if kind == "-m":
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(rest[0], "<string>", "exec"), main.__dict__)
    else:
        runpy.run_path(kind, run_name="__main__")
