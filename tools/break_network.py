"""Cuts the network between two workers of a training run and restores it.

    python tools/break_network.py [--outages 5,60,600,0] [--ways down,drop]

Two workers train in Linux namespaces of this machine, joined by a cable. A reference
run is not disturbed. For each way to cut the cable and each outage in seconds (0: until
both workers have ended), a run either survives the outage, or both workers stop with a
one-line error within a minute, and the same command, run at once, resumes as soon as
the network is back. The result must have the bits of the reference run. With
`--work_dir`, the same command continues after an interruption. Requires Linux and
root's rights.
"""

import itertools
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from subprocess import Popen

from benchmarks.report import say
from flags import choice, parser, several
from machines import NAMES, WAYS, Cable, Machine, connect
from trials import HPARAMS, ROOT, UNDERWAY, run_trials

from t2t_repro.command_line import cli
from t2t_repro.system.errors import UserError

STOP_SECONDS = 60
"""Time in which both workers must stop if they do not survive an outage."""

_HANGS = 1500  # Seconds, longer than any outage and training.
_GONE_STATUS = 75
_GONE = "error: another worker of this training has ended or cannot be reached"


@contextmanager
def train(machines: Sequence[Machine], folder: Path) -> Iterator[list[Popen[bytes]]]:
    """Starts both workers; kills them at the end of the context."""
    command = [sys.executable, "-m", "t2t_repro.train", "--hparams", HPARAMS]
    command += ["--problem", "translate_ende_numbers", "--model_dir", str(folder)]
    command += ["--data_dir", str(folder.parent / "data")]
    cluster = {"worker": [f"{name}:2222" for name in NAMES]}
    with ExitStack() as stack:
        processes = []
        for index, machine in enumerate(machines):
            task = {"type": "worker", "index": index}
            config = json.dumps({"cluster": cluster, "task": task})
            variables = os.environ | {"TF_CONFIG": config, "PYTHONPATH": str(ROOT)}
            log = stack.enter_context(_log(folder, index).open("wb"))
            stack.callback(machine.kill)
            entered = machine.command(*command)
            process = Popen(entered, env=variables, stdout=log, stderr=log)
            processes.append(stack.enter_context(process))
        yield processes


def finish(folder: Path, machines: Sequence[Machine]) -> str:
    """Trains to the end; raises UserError if a worker fails."""
    with train(machines, folder) as processes:
        for index, process in enumerate(processes):
            if process.wait(_HANGS):
                raise _failure(folder, index, f"has status {process.returncode}")
    waited = "waiting for 1 of 2 workers" in "".join(_read(folder, i) for i in (0, 1))
    return "waited for the network and resumed" if waited else "resumed"


def survive(
    folder: Path, machines: Sequence[Machine], cable: Cable, way: str, seconds: float
) -> str:
    """Trains to the end with an outage; raises UserError if a worker fails."""
    with train(machines, folder) as processes:
        while UNDERWAY not in _read(folder, 0) and processes[0].poll() is None:
            time.sleep(0.02)
        cable.cut(way, seconds)
        began = time.monotonic()
        if processes[0].poll() is not None:
            raise _failure(folder, 0, "ended before the cut")
        statuses = [process.wait(_HANGS) for process in processes]
        took = time.monotonic() - began
    if not seconds:
        cable.mend()
    if statuses == [0, 0]:
        return "continued"
    for index, status in enumerate(statuses):
        last = _read(folder, index).splitlines()[-1]
        if status != _GONE_STATUS or not last.startswith(_GONE):
            raise _failure(folder, index, f"has status {status} or another error")
    if took > STOP_SECONDS:
        raise _failure(folder, 1, f"stopped only after {took:.0f} s")
    return f"stopped with an error after {took:.0f} s, {finish(folder, machines)}"


def _log(folder: Path, index: int) -> Path:
    return folder.with_name(f"{folder.name}-{NAMES[index]}.txt")


def _read(folder: Path, index: int) -> str:
    return _log(folder, index).read_text(encoding="utf-8", errors="replace")


def _failure(folder: Path, index: int, words: str) -> UserError:
    say(_read(folder, index))
    return UserError(f"the worker of {_log(folder, index)} {words}")


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, interrupts training runs and prints the results."""
    args = parser(
        __doc__,
        ("outages", several(float), [5.0, 60.0, 600.0, 0.0], "seconds; 0: for good"),
        ("ways", several(choice(WAYS)), list(WAYS), f"of {','.join(WAYS)}"),
        ("work_dir", cli.path, None, "folder for models and results, which is kept"),
    ).parse_args(argv)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(args.work_dir or temporary).resolve()
        with connect(folder) as (*machines, cable):
            trials = {
                f"{way}-{seconds:g}": partial(
                    survive, machines=machines, cable=cable, way=way, seconds=seconds
                )
                for way, seconds in itertools.product(args.ways, args.outages)
            }
            reference = partial(finish, machines=machines)
            run_trials(folder, reference, trials, args.json)


if __name__ == "__main__":
    cli.run(main)
