"""Programs that are timed in turn, so that what disturbs the machine disturbs all."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.report import Result, say
from t2t_repro.command_line import cli
from t2t_repro.system.errors import UserError

TOOLS = Path(__file__).resolve().parents[1]
PEERS = TOOLS / "benchmarks" / "peers"

# Prints its Python's version and those of packages, under any Python 3.
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
    """A program that goes through `peers/turns.py`; its log is named after it.

    A peer has its own environment, without this package. `gpus` are those that it
    sees, as CUDA numbers them: none.
    """

    name: str
    command: Sequence[str]
    is_peer: bool = False
    gpus: str = "-1"


def own(name: str, task: str, work: Mapping[str, Any], gpus: str = "-1") -> Contender:
    """Returns a contender of this package, which does `work` (written as JSON).

    `task` is a module of this room and its function, e.g. "training.train".
    """
    worker = [sys.executable, "-m", "benchmarks.worker", task, json.dumps(work)]
    return Contender(name, worker, gpus=gpus)


def peer(name: str, python: str, script: str, *arguments: str) -> Contender:
    """Returns another program: a script of `peers/`, under its own interpreter."""
    return Contender(name, [python, str(PEERS / script), *arguments], is_peer=True)


def peer_versions(python: str, flag: str, *packages: str) -> str:
    """Returns the versions of an interpreter's packages; UserError: it lacks one."""
    try:
        done = subprocess.run(
            [python, "-W", "ignore", "-c", _VERSIONS, *packages],
            env=_environment(is_peer=True),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
        )
    except OSError as error:
        raise UserError(f"{flag} {python}: {error.strerror}") from None
    if done.returncode:
        raise UserError(f"{flag} {python} has no {packages[0]}; install it there")
    return done.stdout.strip()


class Process:
    """A contender at work until the context ends; its log goes into a folder.

    Raises UserError if its interpreter cannot be started.
    """

    def __init__(self, contender: Contender, folder: Path) -> None:
        self._name = contender.name
        self._log = folder / f"{contender.name.replace(' ', '_')}.log"
        with self._log.open("w", encoding="utf-8") as stderr:
            try:
                self._process = subprocess.Popen(
                    contender.command,
                    env=_environment(contender.is_peer, contender.gpus),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=stderr,
                    encoding="utf-8",
                )
            except OSError as error:
                raise UserError(f"{contender.command[0]}: {error.strerror}") from None

    def __enter__(self) -> Process:
        """Returns itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the process; every request is answered by now."""
        self._process.kill()
        self._process.communicate()

    def ask(self, request: Any) -> Result:
        """Returns the answer to a request; UserError if the process has ended."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # No answer will come, either.
        line = self._process.stdout.readline()
        if not line:
            raise failure(self._name, self._log, self._process.wait())
        answer: Result = json.loads(line)
        return answer


def failure(name: str, log: Path, status: int) -> UserError:
    """Returns the error of a program that failed; shows its log if that is a fault."""
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
    """Sends requests to the programs one after the other, round by round.

    Args:
        contenders: who.
        rounds: the requests of each turn.
        folder: where logs go.
        begin: requests that come first and do not count.
        one_by_one: start a process anew for every turn, so that only one is alive.

    Yields:
        Who answered, what, and the answer, with `start_seconds`: from the start of the
        process until it had done the first request.
    """

    @contextmanager
    def running(each: Contender) -> Iterator[tuple[Process, float]]:
        say(f"starting {each.name} ...")
        started = time.perf_counter()
        with Process(each, folder) as process:
            process.ask(begin[0])
            seconds = time.perf_counter() - started
            for request in begin[1:]:
                process.ask(request)
            yield process, seconds

    with ExitStack() as stack:
        alive = {}
        if not one_by_one:
            alive = {e.name: stack.enter_context(running(e)) for e in contenders}
        for requests, each in itertools.product(rounds, contenders):
            turn = nullcontext(alive[each.name]) if alive else running(each)
            with turn as (process, seconds):
                for request in requests:
                    answer = process.ask(request)
                    yield each.name, request, answer | {"start_seconds": seconds}


def _environment(is_peer: bool, gpus: str = "-1") -> dict[str, str]:
    """Returns the environment of a process that sees these GPUs.

    A peer's lacks our modules, but has oneDNN's setting (`TF_ENABLE_ONEDNN_OPTS`).
    """
    # TensorFlow sets the second; tensor2tensor would take Keras' layers by it.
    hidden = ("PYTHONPATH", "TF2_BEHAVIOR")
    found = {k: v for k, v in os.environ.items() if k not in hidden}
    if not is_peer:
        path = os.environ.get("PYTHONPATH", "")
        found["PYTHONPATH"] = f"{TOOLS}{os.pathsep}{path}" if path else str(TOOLS)
    return found | {"CUDA_VISIBLE_DEVICES": gpus, "PYTHONIOENCODING": "utf-8"}
