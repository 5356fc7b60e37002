"""Kills training runs at random times and checks that resumed runs are bit-identical.

    python tools/inject_faults.py [--kills 20] [--strategy mirrored --replicas 2]
        [--data_dir general:1,domain:3]

A reference run is not interrupted. For each kill, the same command starts in a new
folder, is killed (SIGKILL) at a random time, every fourth time while a checkpoint is
being written, and is run again to the end. All variables and notes of all checkpoints
and of the average, the losses, and other files without times must be identical to those
of the reference run; otherwise, the exit status is 1.
"""

import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from benchmarks.in_turn import failure
from flags import parser

from t2t_repro.command_line import cli
from t2t_repro.system.errors import UserError

EXIT_DIFFERENT = 1
HPARAMS = (
    "tiny,d_model=32,d_ff=64,num_layers=1,dropout=0.1,attention_dropout=0.1,"
    "ffn_dropout=0.1,tokens_per_batch=512,train_steps=240,checkpoint_steps=20,"
    "keep_checkpoints=12,eval_steps=60,warmup_steps=400"
)
TABLES = (
    *("training_log.tsv", "validation_log.tsv", "skipped_pairs.tsv"),
    "corpora_log.tsv",  # Only of several corpora.
)
META = "checkpoint.json"
TIMES = ("saved_at", "seconds", "sha256")  # In META; the checksum covers the times.
FILES = ("hparams.yaml", "model.json", "vocab.model")
_STARTED = "of the positions are tokens"  # Printed before the first step.
_WRITING = ".writing-"
_ONE_IN = 4
_TRIES = 5


class Kill(NamedTuple):
    """A training run that was killed and resumed.

    Attributes:
        number: Number of the kill, starting at 1.
        seconds: Seconds from the start of training to the kill.
        saved: Step of the last checkpoint before the kill.
        writing: Checkpoint that was being written during the kill, or None.
        compared: Number of compared variables.
        different: Variables and files that differ from the reference run.
    """

    number: int
    seconds: float
    saved: int
    writing: str | None
    compared: int
    different: list[str]

    def line(self, kills: int) -> str:
        """Formats the result as one line; `kills` is the total number of kills."""
        writing = f" while writing {self.writing}" if self.writing else ""
        verdict = f"{self.compared:,} variables identical"
        if self.different:
            verdict = f"DIFFERENT: {', '.join(self.different)}"
        return (
            f"kill {self.number} of {kills}: after {self.seconds:.2f} s{writing}, "
            f"resumed from step {self.saved:,}: {verdict}"
        )


class Injector:
    """Runs, kills and resumes a training command.

    Args:
        work_dir: Folder for models and logs.
        train: Flags of `python -m t2t_repro.train`, without the model directory.
        seed: Random seed of the kill times.
    """

    def __init__(self, work_dir: Path, train: Sequence[str], seed: int) -> None:
        self._work_dir = work_dir
        self._train = train
        self._random = random.Random(seed)
        self._reference = work_dir / "reference"
        self._seconds = 0.0
        self._saves = 0

    def run_reference(self) -> None:
        """Runs the training command without interruption."""
        with self._process(self._reference) as process:
            began = self._wait_for_start(self._reference, process)
            self._finish(self._reference, process)
            self._seconds = time.monotonic() - began
        self._saves = len(_steps(self._reference))

    def kill(self, number: int) -> Kill:
        """Kills a training run, resumes it to the end, and compares the result."""
        folder = self._work_dir / f"killed-{number:02d}"
        for _ in range(_TRIES):
            shutil.rmtree(folder, ignore_errors=True)
            seconds = self._start_and_kill(folder, number % _ONE_IN == 0)
            if seconds is not None:
                break
        else:
            raise UserError(
                f"training finished before the kill in {_TRIES} attempts; increase "
                "train_steps in --hparams"
            )
        writing = [path.name for path in (folder / "checkpoints").glob(f"{_WRITING}*")]
        name = writing[0].removeprefix(_WRITING) if writing else None
        saved = max(_steps(folder), default=0)
        with self._process(folder) as process:
            self._finish(folder, process)
        compared, different = compare(self._reference, folder)
        if not different:
            shutil.rmtree(folder)
        return Kill(number, seconds, saved, name, compared, different)

    def _start_and_kill(self, folder: Path, while_saving: bool) -> float | None:
        """Starts and kills a training run.

        Returns the seconds from the start to the kill, or None if the run had already
        finished.
        """
        with self._process(folder) as process:
            began = self._wait_for_start(folder, process)
            if while_saving:
                count = self._random.randrange(self._saves)
                _wait_for_saving(folder, process, count)
                time.sleep(self._random.uniform(0, 0.004))
            else:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(self._random.uniform(0, self._seconds))
            process.kill()
            seconds = time.monotonic() - began
            if process.wait() == -signal.SIGKILL:
                return seconds
            # The machine has become faster since the reference run.
            self._seconds = min(self._seconds, seconds)
            return None

    @contextmanager
    def _process(self, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
        """Starts the command and kills it at the end of the context."""
        command = [sys.executable, "-m", "t2t_repro.train", *self._train]
        command += ["--model_dir", str(folder)]
        with (
            open(self._log(folder), "wb") as log,
            subprocess.Popen(command, stdout=log, stderr=log) as process,
        ):
            try:
                yield process
            finally:
                process.kill()

    def _log(self, folder: Path) -> Path:
        return self._work_dir / f"{folder.name}.txt"

    def _wait_for_start(self, folder: Path, process: subprocess.Popen[bytes]) -> float:
        """Waits until training starts; returns the time of the start."""
        while _STARTED not in self._log(folder).read_text(encoding="utf-8"):
            if process.poll() is not None:
                raise self._training_failure(folder, process)
            time.sleep(0.002)
        return time.monotonic()

    def _finish(self, folder: Path, process: subprocess.Popen[bytes]) -> None:
        if process.wait() != 0:
            raise self._training_failure(folder, process)

    def _training_failure(
        self, folder: Path, process: subprocess.Popen[bytes]
    ) -> UserError:
        name = f"training in {folder}"
        return failure(name, self._log(folder), process.returncode)


def compare(expected: Path, actual: Path) -> tuple[int, list[str]]:
    """Compares two model directories bit by bit.

    Returns:
        Number of compared variables, and descriptions of the differences: checkpoints
        in only one directory, variables and notes as `FOLDER/FILE NAME`, files, and
        temporary files that were left behind.
    """
    folders = [_folders(directory) for directory in (expected, actual)]
    different = [f"{name} is not in both" for name in sorted(folders[0] ^ folders[1])]
    both, compared = (expected, actual), 0
    for name in sorted(folders[0] & folders[1]):
        ours, theirs = (_contents(directory / name) for directory in both)
        compared += sum(not entry.startswith(META) for entry in ours)
        unequal = {entry for entry, _ in ours.items() ^ theirs.items()}
        different += [f"{name}/{entry}" for entry in sorted(unequal)]
    for name in (*TABLES, *FILES):
        read = rows_without_speed if name in TABLES else Path.read_bytes
        files = (expected / name, actual / name)
        first, second = (path.exists() and read(path) for path in files)
        if first != second:
            different.append(name)
    debris = sorted(str(path.relative_to(actual)) for path in actual.rglob(".*"))
    return compared, different + [f"{name} was left behind" for name in debris]


def compare_resumed(expected: Path, actual: Path) -> tuple[int, list[str]]:
    """Compares like `compare`, after deleting checkpoints of interruptions.

    They are those in ``actual`` whose step is not in the schedule of ``expected``.
    """
    for path in (actual / "checkpoints").glob("step-*"):
        if not (expected / "checkpoints" / path.name).exists():
            shutil.rmtree(path)
    return compare(expected, actual)


def _folders(directory: Path) -> set[str]:
    """Returns the checkpoint folders of a model directory."""
    paths = directory.glob(f"**/{META}")
    return {str(path.parent.relative_to(directory)) for path in paths}


def _contents(checkpoint: Path) -> dict[str, tuple[str, bytes]]:
    """Returns dtype, shape and bytes of all variables of a checkpoint.

    Also returns the values in its checkpoint.json, except for times and the checksum.
    """
    from t2t_repro.runs.tensor_file import TensorFile

    notes = json.loads((checkpoint / META).read_bytes())
    tensors = {
        f"{META} {key}": (type(value).__name__, json.dumps(value).encode())
        for key, value in notes.items()
        if key not in TIMES
    }
    for index in checkpoint.glob("*.index"):
        file = TensorFile(index.with_suffix(""))
        for name in file.shapes():
            value = file.read(name)
            kind = f"{value.dtype} {value.shape}"
            tensors[f"{index.stem} {name}"] = (kind, value.tobytes())
    return tensors


def rows_without_speed(table: Path) -> list[list[str]]:
    """Returns the rows of a table without its speed columns."""
    rows = [row.split("\t") for row in table.read_text(encoding="utf-8").splitlines()]
    columns = [i for i, name in enumerate(rows[0]) if not name.endswith("per_second")]
    return [[row[i] for i in columns] for row in rows]


def _steps(directory: Path) -> list[int]:
    """Returns the steps of the complete checkpoints."""
    paths = (directory / "checkpoints").glob("step-*/checkpoint.json")
    return [int(path.parent.name.removeprefix("step-")) for path in paths]


def _wait_for_saving(
    folder: Path, process: subprocess.Popen[bytes], count: int
) -> None:
    """Waits until the next checkpoint after the first `count` ones is being written.

    Returns early if the process ends.
    """
    checkpoints = folder / "checkpoints"
    while process.poll() is None:
        if len(_steps(folder)) >= count and any(checkpoints.glob(f"{_WRITING}*")):
            return


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, kills and compares training runs, and prints the results."""
    args = parser(
        __doc__,
        ("kills", cli.int_range(1), 20, "number of kills"),
        ("seed", cli.int_range(0), 1, "random seed of the kill times"),
        ("hparams", cli.path, HPARAMS, "hyper-parameter set with overrides"),
        ("data_dir", str, None, "your files; see t2t_repro.train"),
        ("strategy", str, "one_device", "see t2t_repro.train"),
        ("replicas", cli.int_range(0), 0, "see t2t_repro.train"),
        ("work_dir", cli.path, None, "empty or new folder to keep differing models in"),
    ).parse_args(argv)
    cli.start_tensorflow(args.verbose)
    stream = sys.stderr if args.json else sys.stdout
    train = ["--hparams", args.hparams, "--strategy", args.strategy]
    train += ["--replicas", str(args.replicas)]
    with tempfile.TemporaryDirectory() as temporary:
        work_dir = Path(args.work_dir or temporary)
        work_dir.mkdir(parents=True, exist_ok=True)
        if any(work_dir.iterdir()):
            raise UserError(f"--work_dir {work_dir} is not empty; give an empty folder")
        data = [f"{work_dir}/data"]
        if args.data_dir:
            data = [args.data_dir, "--problem", "files"]
        train += ["--data_dir", *data]
        injector = Injector(work_dir, train, args.seed)
        injector.run_reference()
        kills = []
        for number in range(1, args.kills + 1):
            kills.append(injector.kill(number))
            print(kills[-1].line(args.kills), file=stream, flush=True)
    identical = sum(not kill.different for kill in kills)
    values = {"identical": identical, "kills": [kill._asdict() for kill in kills]}
    text = f"{identical} of {args.kills} identical"
    cli.print_result(text, values, args.json)
    if identical < args.kills:
        sys.exit(EXIT_DIFFERENT)


if __name__ == "__main__":
    cli.run(main)
