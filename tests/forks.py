"""Runs functions in processes of their own, which share one import of TensorFlow.

A process can have only one distribution strategy, and importing TensorFlow takes
seconds. The functions run in forks of a new process, which has imported their modules
but not yet used TensorFlow.
"""

import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from tests import fork_server
from tests.run_command import ROOT, Done

_PROGRAM = "from tests.forks import serve; serve()"
_STREAMS = ("out", "err")


class Forks:
    """Function calls that run at the same time, each in its own process.

    Args:
        function: Function of a module.
        *calls: Arguments of each call, in types of JSON.
        environments: Environment variables of each process; None: no changes.
        timeout: Time limit in seconds.
        **environment: Environment variables of all processes.
    """

    def __init__(
        self,
        function: Callable[..., None],
        *calls: tuple[Any, ...],
        environments: list[dict[str, str]] | None = None,
        timeout: int = 240,
        **environment: str,
    ) -> None:
        self._timeout = timeout
        self._folder = tempfile.TemporaryDirectory()
        settings = environments or [{}] * len(calls)
        jobs = list(zip(calls, settings, strict=True))
        names = [function.__module__, function.__name__, json.dumps(jobs)]
        self._process = subprocess.Popen(
            [fork_server.python(), "-c", _PROGRAM, self._folder.name, *names],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            start_new_session=True,
            stdout=subprocess.PIPE,
            text=True,
        )

    def finish(self) -> list[Done]:
        """Waits for the processes and returns their results; kills them on failure."""
        try:
            out, _ = self._process.communicate(timeout=self._timeout)
            assert self._process.returncode == 0, self._texts("err")
            texts = [self._texts(stream) for stream in _STREAMS]
            return [Done(*done) for done in zip(json.loads(out), *texts, strict=True)]
        except subprocess.TimeoutExpired as error:
            raise AssertionError(self._texts("err")) from error
        finally:
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.communicate()
            self._folder.cleanup()

    def _texts(self, stream: str) -> list[str]:
        paths = sorted(Path(self._folder.name).glob(f"*.{stream}"))
        return [path.read_text(encoding="utf-8") for path in paths]


def run(function: Callable[..., None], *calls: tuple[Any, ...], **options: Any) -> Any:
    """Runs `Forks` to the end; returns a list of `Done`."""
    return Forks(function, *calls, **options).finish()


def serve() -> None:
    """Forks for each call and prints the exit statuses."""
    folder, module, name, jobs = sys.argv[1:]
    # Garbage collection would read, and in the forks copy, all imported objects.
    gc.disable()
    function = getattr(import_module(module), name)
    gc.freeze()
    gc.enable()
    pids = [
        _fork(Path(folder) / f"{number:03}", function, *job)
        for number, job in enumerate(json.loads(jobs))
    ]
    statuses = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    print(json.dumps(statuses))


def _fork(
    path: Path,
    function: Callable[..., None],
    arguments: list[Any],
    environment: Mapping[str, str],
) -> int:
    """Starts a call, which writes its output to files; returns the process id."""
    if pid := os.fork():
        return pid
    status = 1
    try:
        for number, stream in enumerate(_STREAMS, 1):
            os.dup2(os.open(f"{path}.{stream}", os.O_WRONLY | os.O_CREAT), number)
        os.environ.update(environment)
        function(*arguments)
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
