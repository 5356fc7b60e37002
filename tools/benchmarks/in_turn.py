"""Runs programs in turn, so that disturbances of the machine affect all of them."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.report import Result, say
from t2t_repro.command_line import cli
from t2t_repro.system.errors import UserError

TOOLS = Path(__file__).resolve().parents[1]
PEERS = TOOLS / "benchmarks" / "peers"

# oneDNN 3.7 or newer logs its instruction set once, and not each matmul.
_LOGGED = {"ONEDNN_VERBOSE": "profile_exec,filter=graph"}
_INSTRUCTIONS = {
    "CTranslate2": r"Selected ISA: (.+)",
    "oneDNN": r",cpu,isa:(.+)",
    "MKL": r"MKL_VERBOSE .* architecture (.+?), Lnx",
}

# Prints the versions of packages and of Python; runs under any Python 3.
_VERSIONS = """
import platform, sys
try:
    from importlib.metadata import version
except ImportError:
    import pkg_resources
    version = lambda name: pkg_resources.get_distribution(name).version
print(", ".join([name + " " + version(name) for name in sys.argv[1:]]
                + ["Python " + platform.python_version()]))
"""


@dataclass(frozen=True)
class Contender:
    """A program to time, which answers requests with `peers/turns.py`.

    Attributes:
        name: Name in the tables and of the log file.
        command: Command line.
        is_peer: Whether the program runs in an environment without this package.
        variables: Environment variables of the process. Without
            `CUDA_VISIBLE_DEVICES`, it sees no GPU.
    """

    name: str
    command: Sequence[str]
    is_peer: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)


def own(name: str, task: str, work: Mapping[str, Any], **variables: str) -> Contender:
    """Returns a contender that runs a task of this package in `benchmarks.worker`.

    Args:
        name: Name in the tables.
        task: Module of `benchmarks` and its function, e.g. "training.train".
        work: The task's argument, passed as JSON.
        **variables: Environment variables of the process.
    """
    worker = [sys.executable, "-m", "benchmarks.worker", task, json.dumps(work)]
    return Contender(name, worker, variables=variables)


def peer(name: str, python: str, script: str, *arguments: str) -> Contender:
    """Returns a contender that runs a script of `peers/` under another interpreter."""
    return Contender(name, [python, str(PEERS / script), *arguments], is_peer=True)


def peer_versions(python: str, flag: str, *packages: str) -> str:
    """Returns the versions of an interpreter's packages.

    Raises UserError if the interpreter does not start or a package is missing.
    """
    command = [python, "-W", "ignore", "-c", _VERSIONS, *packages]
    variables = _environment(is_peer=True, extra={})
    try:
        return subprocess.check_output(
            command, env=variables, stderr=subprocess.DEVNULL, encoding="utf-8"
        ).strip()
    except OSError as error:
        reason = error.strerror
    except subprocess.CalledProcessError:
        reason = f"{packages[0]} is not installed in this environment"
    raise UserError(f"{flag} {python}: {reason}")


class Process:
    """Process of a contender, which is killed at the end of the context.

    Its standard error is written to a log file in `folder`. Raises UserError if the
    interpreter cannot be started.
    """

    def __init__(self, contender: Contender, folder: Path) -> None:
        self._name = contender.name
        self._log = folder / f"{contender.name.replace(' ', '_')}.log"
        with self._log.open("w", encoding="utf-8") as stderr:
            try:
                self._process = subprocess.Popen(
                    contender.command,
                    env=_environment(contender.is_peer, contender.variables),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=stderr,
                    encoding="utf-8",
                )
            except OSError as error:
                raise UserError(f"{contender.command[0]}: {error.strerror}") from None

    def __enter__(self) -> Process:
        """Returns the process."""
        return self

    def __exit__(self, *_: object) -> None:
        """Kills the process; all requests have been answered."""
        self._process.kill()
        self._process.communicate()

    def ask(self, request: Any) -> Result:
        """Sends a request and returns the answer.

        Raises UserError if the process has ended.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # The process has ended; `failure` reports it below.
        line = self._process.stdout.readline()
        if not line:
            raise failure(self._name, self._log, self._process.wait())
        answer: Result = json.loads(line)
        return answer

    def instructions(self) -> str:
        """Returns the instruction sets that libraries have logged, "" without any."""
        text = self._log.read_text(encoding="utf-8", errors="replace")
        found = {n: re.search(line, text) for n, line in _INSTRUCTIONS.items()}
        return ", ".join(f"{name}: {m[1]}" for name, m in found.items() if m)


def failure(name: str, log: Path, status: int) -> UserError:
    """Returns the error of a failed program, with the last line of its log.

    Prints the whole log unless the program reported a mistake of the user.
    """
    text = log.read_text(encoding="utf-8", errors="replace").strip()
    if status != cli.EXIT_USER_ERROR:
        say(text)
    last = text.rpartition("\n")[2].removeprefix("error: ")
    return UserError(f"{name} failed: {last or 'its log is empty'}")


def in_turn(
    contenders: Sequence[Contender],
    rounds: Sequence[Sequence[Any]],
    folder: Path,
    *,
    begin: Sequence[Any],
    one_by_one: bool = False,
) -> Iterator[tuple[str, Any, Result]]:
    """Sends the requests of each round to the programs, one program at a time.

    Args:
        contenders: Programs to time.
        rounds: Requests of each round.
        folder: Folder for the logs.
        begin: Warm-up requests, which are not timed.
        one_by_one: Whether to start a new process for every turn, so that only one is
            alive.

    Yields:
        Program name, request and answer. The answer's `start_seconds` is the time from
        the start of the process to its first answer, `first_seconds` the `seconds` of
        that answer, and `instructions` the instruction set.
    """

    @contextmanager
    def running(each: Contender) -> Iterator[tuple[Process, Result]]:
        say(f"starting {each.name} ...")
        started = time.perf_counter()
        with Process(each, folder) as process:
            first = process.ask(begin[0])
            times: Result = {"start_seconds": time.perf_counter() - started}
            times["first_seconds"] = first["seconds"]
            for request in begin[1:]:
                process.ask(request)
            yield process, times | {"instructions": process.instructions()}

    with ExitStack() as stack:
        alive = {}
        if not one_by_one:
            alive = {e.name: stack.enter_context(running(e)) for e in contenders}
        for requests, each in itertools.product(rounds, contenders):
            turn = nullcontext(alive[each.name]) if alive else running(each)
            with turn as (process, times):
                for request in requests:
                    answer = process.ask(request)
                    yield each.name, request, answer | times


def _environment(is_peer: bool, extra: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment variables of a process, with those in `extra`.

    A peer cannot import our modules, but uses the same `TF_ENABLE_ONEDNN_OPTS`.
    """
    # TensorFlow sets TF2_BEHAVIOR, which makes tensor2tensor use Keras layers.
    hidden = ("PYTHONPATH", "TF2_BEHAVIOR")
    variables = {k: v for k, v in os.environ.items() if k not in hidden}
    if not is_peer:
        paths = [str(TOOLS), *filter(None, [os.environ.get("PYTHONPATH")])]
        variables["PYTHONPATH"] = os.pathsep.join(paths)
    variables |= {"CUDA_VISIBLE_DEVICES": "-1", "PYTHONIOENCODING": "utf-8", **_LOGGED}
    return variables | dict(extra)
