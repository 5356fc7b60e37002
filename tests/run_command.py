"""Runs commands with flags, in this process or in a new one."""

import contextlib
import importlib
import importlib.util
import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from t2t_repro.command_line import cli
from tests import forks
from tests.forks import ROOT, Done


def run(command: str, *arguments: str, stdin: bytes = b"") -> Done:
    """Runs a command in this process, which saves the seconds of starting a new one.

    Args:
        command: COMMAND in `t2t_repro.COMMAND`, or path of a tool.
        *arguments: Flags of the command.
        stdin: Contents of standard input.
    """
    main = _main(command)
    out, err = io.StringIO(), io.StringIO()
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(stdin))
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            cli.run(main, arguments)
    except SystemExit as error:
        assert isinstance(error.code, int)
        return Done(error.code, out.getvalue(), err.getvalue())
    finally:
        sys.stdin = before


def _main(command: str) -> Callable[[Sequence[str] | None], None]:
    """Returns the function `main` of a command or a tool."""
    if not command.endswith(".py"):
        return importlib.import_module(f"t2t_repro.{command}").main
    name = f"tool_{Path(command).stem}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, ROOT / command)
        assert spec is not None
        assert spec.loader is not None
        # The dataclass decorator looks up the module in sys.modules.
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name].main


def start(
    command: str, *arguments: str, python: str = sys.executable, **settings: object
) -> subprocess.Popen[str]:
    """Starts a command, named as for `run`, with piped output.

    The command can be interrupted by SIGINT. A shell that runs the tests in the
    background ignores this signal, and subprocesses would inherit that.
    """
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("T2T_REPRO_VERBOSE", None)
    program = ["-m", f"t2t_repro.{command}"]
    if command.endswith(".py"):
        program = [str(ROOT / command)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    try:
        return subprocess.Popen(
            [python, *program, *arguments],
            encoding="utf-8",
            env=environment,
            **(pipes | settings),  # type: ignore[call-overload]
        )
    finally:
        signal.signal(signal.SIGINT, handler)


def run_alone(command: str, *arguments: str, **settings: Any) -> Done:
    """Runs a command like `start` and waits for it.

    It runs in a fork of a process that has imported TensorFlow, unless `python` gives
    another interpreter.
    """
    text = settings.pop("input", "")
    settings = {"python": forks.python(), "stdin": subprocess.PIPE} | settings
    process = start(command, *arguments, **settings)
    out, err = process.communicate(text)
    return Done(process.returncode, out, err)


def is_one_clear_line(done: Done) -> bool:
    """Returns whether a command failed as required: status 2 and one line of error.

    Standard output may contain earlier progress.
    """
    return (
        done.status == 2
        and done.err.startswith("error: ")
        and done.err.endswith("\n")
        and done.err.count("\n") == 1
        and "Traceback" not in done.err
    )
