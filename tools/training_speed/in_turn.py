"""Processes that take turns on the same work."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarking import Result, say

from t2t_repro.command_line import cli
from t2t_repro.system.errors import UserError
from training_speed.contenders import PEERS, Contender, Work, peer_environment


class Process:
    """One contender, alive; see `peers/turns.py`.

    Args:
        contender: who.
        work: what it computes.
        folder: where its log goes.
    """

    def __init__(self, contender: Contender, work: Work, folder: Path) -> None:
        self._name = contender.name
        self._log = folder / f"{contender.name.replace(' ', '_')}.log"
        is_peer = contender.program in PEERS
        environment = peer_environment() if is_peer else dict(os.environ)
        began = time.perf_counter()
        with self._log.open("w", encoding="utf-8") as stderr:
            self._process = subprocess.Popen(
                contender.command(work),
                env={**environment, "CUDA_VISIBLE_DEVICES": "-1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                encoding="utf-8",
            )
        self._answer()
        self.start_seconds = time.perf_counter() - began
        """From the start of the process to the end of its first step."""

    def steps(self, count: int) -> Result:
        """Lets it make some steps; returns its answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{count}\n")
        self._process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        """Ends the process."""
        self._process.communicate()

    def _answer(self) -> Result:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if line:
            answer: Result = json.loads(line)
            return answer
        self._process.communicate()
        text = self._log.read_text(encoding="utf-8", errors="replace").strip()
        if self._process.returncode != cli.EXIT_USER_ERROR:
            say(text)
        last = text.rpartition("\n")[2].removeprefix("error: ")
        raise UserError(f"{self._name} failed: {last or 'it said nothing'}")


def time_in_turn(
    work: Work,
    who: Sequence[Contender],
    *,
    rounds: int,
    steps: int,
    one_by_one: bool,
    folder: Path,
) -> dict[str, Any]:
    """Times contenders on the same work, one after the other, round by round.

    Args:
        work: what they compute.
        who: the contenders.
        rounds: how often each has its turn.
        steps: how many steps a turn has.
        one_by_one: whether only one process is alive at a time; else all are.
        folder: where logs go.

    Returns:
        For each contender's name `seconds_per_step` of each round, `start_seconds`,
        and `memory`: the most bytes that it has held, less those after its imports.
    """
    found: dict[str, Any] = {
        each.name: {"seconds_per_step": [], "start_seconds": [], "memory": 0}
        for each in who
    }

    def turn(name: str, process: Process, number: int) -> None:
        answer = process.steps(steps)
        seconds = answer["seconds"] / steps
        held = answer["memory"] - answer["memory_before"]
        found[name]["seconds_per_step"].append(seconds)
        found[name]["memory"] = max(found[name]["memory"], held)
        say(f"  round {number}: {name} {seconds:.3f} s a step")

    with ExitStack() as stack:
        alive = {}
        if not one_by_one:
            for each in who:
                alive[each.name] = stack.enter_context(_running(each, work, folder))
        for number in range(1, rounds + 1):
            for each in who:
                if each.name in alive:
                    turn(each.name, alive[each.name], number)
                    continue
                with _running(each, work, folder) as process:
                    turn(each.name, process, number)
                    found[each.name]["start_seconds"].append(process.start_seconds)
        for name, process in alive.items():
            found[name]["start_seconds"].append(process.start_seconds)
    return found


@contextmanager
def _running(contender: Contender, work: Work, folder: Path) -> Iterator[Process]:
    """Runs a contender up to its second step, for the first is slower."""
    say(f"starting {contender.name} ...")
    process = Process(contender, work, folder)
    try:
        process.steps(1)
        yield process
    finally:
        process.close()
