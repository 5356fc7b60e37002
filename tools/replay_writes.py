"""Replays parts of recorded writes, as after a power failure, and checks the result.

    python tools/replay_writes.py [--subsets 1000] [--only checkpoints,shards]

Each of these functions runs once in an empty folder, and its changes of files are
recorded. The folder is then rebuilt after every prefix of the changes, with
and without those that were not synced, and with random subsets of these.

- checkpoints: a training saves three checkpoints and deletes older ones;
- shards: a split is encoded in three shards;
- file: a file is written atomically and replaced;
- translation: lines are appended to a file that can be resumed.

Afterwards, the program must find the last state that it had reported as saved, or a
later one, complete; before the first, it may also report that files are missing. Then
it must finish its work with the same result. The exit status is 1 if it does not.
"""

import os
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from call_faults import forks, recorded
from call_faults.disk import Recording
from flags import choice, parser, several

from t2t_repro.command_line import cli
from t2t_repro.system.errors import UserError

EXIT_FAULTS = 1
_KEPT = (0.1, 0.5, 0.9)


class Scenario(NamedTuple):
    """Function whose changes are recorded, and the check of a rebuilt folder.

    Attributes:
        record: Function that works in the current folder.
        check: Function of a folder and the number of the last reported state, or 0. It
            raises AssertionError if the folder is not as it must be.
    """

    record: Callable[[], None]
    check: Callable[[Path, int], None]


SCENARIOS = {
    "checkpoints": Scenario(recorded.save_checkpoints, recorded.check_checkpoints),
    "shards": Scenario(recorded.encode, recorded.check_shards),
    "file": Scenario(recorded.replace_file, recorded.check_file),
    "translation": Scenario(recorded.append_lines, recorded.check_lines),
}


def crash_states(
    recording: Recording, subsets: int, seed: int
) -> Iterator[tuple[int, list[int]]]:
    """Yields the number of changes before a power failure, and those surviving ones."""
    generator = random.Random(seed)
    ends = range(len(recording.changes) + 1)
    for end in ends:
        unsynced = set(recording.unsynced(end))
        yield end, [*range(end)]
        yield end, [number for number in range(end) if number not in unsynced]
    for _ in range(subsets):
        end, probability = generator.choice(ends), generator.choice(_KEPT)
        lost = {n for n in recording.unsynced(end) if generator.random() > probability}
        yield end, [number for number in range(end) if number not in lost]


def replay(
    name: str, scenario: Scenario, work_dir: Path, subsets: int, seed: int
) -> tuple[str, int]:
    """Records a scenario and checks all rebuilt folders.

    Returns:
        A line with the result, and the number of faults.
    """
    folder, log = work_dir / name, work_dir / f"{name}.log"
    folder.mkdir()
    result = forks.run(folder, scenario.record, log=log)
    if result.status != 0:
        raise UserError(f"{name} fails by itself: {result.err.strip()}")
    recording = Recording(folder, log)
    recording.replay(range(len(recording.changes)), work_dir / "copy")
    if recorded.read_files(work_dir / "copy") != recorded.read_files(folder):
        raise UserError(f"{name}: its recording misses changes")
    shutil.rmtree(work_dir / "copy")
    faults: dict[str, int] = {}
    states = list(crash_states(recording, subsets, seed))
    checked = 0
    try:
        for end, kept in states:
            done = max((k for k, at in recording.marks.items() if at <= end), default=0)
            with tempfile.TemporaryDirectory() as temporary:
                rebuilt = Path(temporary, "rebuilt")
                recording.replay(kept, rebuilt)
                try:
                    scenario.check(rebuilt, done)
                except Exception as error:
                    text = str(error).replace(temporary, "")
                    cause = f"{type(error).__name__}: {text}"
                    faults[cause] = faults.get(cause, 0) + 1
            checked += 1
    finally:  # Also after Ctrl-C.
        failed = sum(faults.values())
        line = (
            f"{name}: {len(recording.changes)} changes; {checked:,} of {len(states):,} "
            f"folders checked, {failed:,} faults"
        )
        causes = sorted(faults.items(), key=lambda item: -item[1])
        line += "".join(f"\n  {count}: {cause}" for cause, count in causes[:10])
        print(line, flush=True)
    return line, failed


def main(argv: Sequence[str] | None = None) -> None:
    """Replays the scenarios and prints a line for each."""
    args = parser(
        __doc__,
        ("subsets", cli.int_range(0), 1000, "random subsets of each scenario"),
        ("seed", cli.int_range(0), 1, "random seed of the subsets"),
        ("only", several(choice(SCENARIOS)), [*SCENARIOS], "scenarios"),
        json_flag=False,
    ).parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        work_dir = Path(os.path.realpath(folder))
        forks.start_server(work_dir)
        failed = 0
        for name in args.only:
            failed += replay(name, SCENARIOS[name], work_dir, args.subsets, args.seed)[
                1
            ]
    if failed:
        sys.exit(EXIT_FAULTS)


if __name__ == "__main__":
    cli.run(main)
