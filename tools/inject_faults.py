"""Kills trainings at random moments and compares what becomes of them.

    python tools/inject_faults.py [--kills 20] [--strategy mirrored --replicas 2]

One training runs undisturbed. For each kill the same command begins in a new folder, is
killed (SIGKILL) at a random moment (one in four while a checkpoint is being written),
and is run again to the end. All variables of all checkpoints, the average, the losses
and all files that do not tell time must have the same bits; else exit status 1.
"""

import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.in_turn import failure

from t2t_repro.command_line import cli
from t2t_repro.system.errors import UserError

EXIT_DIFFERENT = 1
HPARAMS = (
    "tiny,d_model=32,d_ff=64,num_layers=1,dropout=0.1,attention_dropout=0.1,"
    "ffn_dropout=0.1,tokens_per_batch=512,train_steps=240,checkpoint_steps=20,"
    "keep_checkpoints=12,eval_steps=60,warmup_steps=400"
)
TABLES = ("training_log.tsv", "validation_log.tsv", "skipped_pairs.tsv")
FILES = ("hparams.yaml", "model.json", "vocab.model")
_BEGUN = "an epoch: "  # What the command prints before its first update.
_WRITING = ".writing-"
_ONE_IN = 4
_TRIES = 5


class Kill(NamedTuple):
    """One training that was killed and went on.

    Attributes:
        number: which, from 1.
        seconds: after the training began.
        saved: updates that were saved by then.
        writing: the checkpoint that was being written, or None.
        compared: how many variables were compared.
        different: what was not as in the undisturbed training.
    """

    number: int
    seconds: float
    saved: int
    writing: str | None
    compared: int
    different: list[str]

    def line(self, kills: int) -> str:
        """Describes it in one line."""
        writing = f", while {self.writing} was written" if self.writing else ""
        found = f"{self.compared:,} variables identical"
        if self.different:
            found = f"DIFFERENT: {', '.join(self.different)}"
        return (
            f"kill {self.number} of {kills}: {self.seconds:.2f} s into the training"
            f"{writing}, {self.saved:,} updates saved; gone on: {found}"
        )


class Injector:
    """Runs the same training again and again.

    `train` are the flags of `python -m t2t_repro.train` but for its folders, which lie
    in `work_dir`; `seed` is of the moments.
    """

    def __init__(self, work_dir: Path, train: Sequence[str], seed: int) -> None:
        self._work_dir = work_dir
        self._train = train
        self._random = random.Random(seed)
        self._undisturbed = work_dir / "undisturbed"
        self._seconds = 0.0
        self._saves = 0

    def run_undisturbed(self) -> None:
        """Trains what all others are compared with."""
        with self._process(self._undisturbed) as process:
            began = self._wait_for_beginning(self._undisturbed, process)
            self._finish(self._undisturbed, process)
            self._seconds = time.monotonic() - began
        self._saves = len(_steps(self._undisturbed))

    def kill(self, number: int) -> Kill:
        """Kills a training, lets it go on to its end, and compares."""
        folder = self._work_dir / f"killed-{number:02d}"
        for _ in range(_TRIES):
            shutil.rmtree(folder, ignore_errors=True)
            seconds = self._begin_and_kill(folder, number % _ONE_IN == 0)
            if seconds is not None:
                break
        else:
            raise UserError(
                f"in {_TRIES} tries the training ended before it could be killed; "
                "give it more updates with --hparams"
            )
        writing = [path.name for path in (folder / "checkpoints").glob(f"{_WRITING}*")]
        saved = max(_steps(folder), default=0)
        with self._process(folder) as process:
            self._finish(folder, process)
        compared, different = compare(self._undisturbed, folder)
        if not different:
            shutil.rmtree(folder)
        name = writing[0].removeprefix(_WRITING) if writing else None
        return Kill(number, seconds, saved, name, compared, different)

    def _begin_and_kill(self, folder: Path, while_saving: bool) -> float | None:
        """Returns after how many seconds it was killed; None: it had ended before."""
        with self._process(folder) as process:
            began = self._wait_for_beginning(folder, process)
            if while_saving:
                which = self._random.randrange(self._saves)
                _wait_for_saving(folder, process, which)
                time.sleep(self._random.uniform(0, 0.004))
            else:
                time.sleep(self._random.uniform(0, self._seconds))
            process.send_signal(signal.SIGKILL)
            seconds = time.monotonic() - began
            return seconds if process.wait() == -signal.SIGKILL else None

    @contextmanager
    def _process(self, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
        """Runs the command; it does not outlive the context."""
        command = [sys.executable, "-m", "t2t_repro.train", *self._train]
        folders = ["--data_dir", f"{self._work_dir}/data", "--model_dir", str(folder)]
        with open(self._log(folder), "wb") as log:
            process = subprocess.Popen(
                [*command, *folders], stdout=log, stderr=subprocess.STDOUT
            )
            try:
                yield process
            finally:
                process.kill()
                process.wait()

    def _log(self, folder: Path) -> Path:
        return self._work_dir / f"{folder.name}.txt"

    def _wait_for_beginning(
        self, folder: Path, process: subprocess.Popen[bytes]
    ) -> float:
        """Returns when the training began."""
        while _BEGUN not in self._log(folder).read_text(encoding="utf-8"):
            if process.poll() is not None:
                raise self._failed(folder, process)
            time.sleep(0.002)
        return time.monotonic()

    def _finish(self, folder: Path, process: subprocess.Popen[bytes]) -> None:
        if process.wait() != 0:
            raise self._failed(folder, process)

    def _failed(self, folder: Path, process: subprocess.Popen[bytes]) -> UserError:
        name = f"the training in {folder}"
        return failure(name, self._log(folder), process.returncode)


def compare(expected: Path, found: Path) -> tuple[int, list[str]]:
    """Compares two model directories bit by bit.

    Returns the number of variables compared, and the names of what differs: checkpoints
    that only one has, `FOLDER/PART NAME` for a variable, files, debris.
    """
    compared, different = 0, []
    folders = [_folders(directory) for directory in (expected, found)]
    different += [f"{name} is not in both" for name in sorted(folders[0] ^ folders[1])]
    for name in sorted(folders[0] & folders[1]):
        ours, theirs = (_tensors(directory / name) for directory in (expected, found))
        compared += len(ours)
        different += [
            f"{name}/{tensor}"
            for tensor in sorted(ours.keys() | theirs.keys())
            if ours.get(tensor) != theirs.get(tensor)
        ]
    for name, read in (
        *((table, _timeless) for table in TABLES),
        *((file, Path.read_bytes) for file in FILES),
    ):
        if read(expected / name) != read(found / name):
            different.append(name)
    left = [str(path.relative_to(found)) for path in found.rglob(".*")]
    return compared, different + [f"{name} was left behind" for name in sorted(left)]


def _folders(directory: Path) -> set[str]:
    """Returns the checkpoints of a model directory."""
    return {
        str(path.parent.relative_to(directory))
        for path in directory.glob("**/checkpoint.json")
    }


def _tensors(checkpoint: Path) -> dict[str, tuple[str, bytes]]:
    """Returns type and bytes of every variable of a checkpoint."""
    from t2t_repro.runs.checkpoints import TensorFile

    found = {}
    for index in checkpoint.glob("*.index"):
        file = TensorFile(index.with_suffix(""))
        for name in file.shapes():
            value = file.read(name)
            kind = f"{value.dtype} {value.shape}"
            found[f"{index.stem} {name}"] = (kind, value.tobytes())
    return found


def _timeless(table: Path) -> list[list[str]]:
    """Returns the rows of a table without the column of the speed."""
    rows = [row.split("\t") for row in table.read_text(encoding="utf-8").splitlines()]
    kept = [i for i, name in enumerate(rows[0]) if not name.endswith("per_second")]
    return [[row[i] for i in kept] for row in rows]


def _steps(directory: Path) -> list[int]:
    """Returns the steps of the checkpoints that are in place."""
    found = (directory / "checkpoints").glob("step-*/checkpoint.json")
    return [int(path.parent.name.removeprefix("step-")) for path in found]


def _wait_for_saving(
    folder: Path, process: subprocess.Popen[bytes], which: int
) -> None:
    """Waits until a checkpoint is begun after so many others, or the process ended."""
    checkpoints = folder / "checkpoints"
    while process.poll() is None:
        if len(_steps(folder)) >= which and any(checkpoints.glob(f"{_WRITING}*")):
            return


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, kills and compares, and prints a line for each kill."""
    args = _parse(argv)
    cli.start_tensorflow(args.verbose)
    stream = sys.stderr if args.json else sys.stdout
    train = ["--hparams", args.hparams, "--strategy", args.strategy]
    train += ["--replicas", str(args.replicas)]
    with tempfile.TemporaryDirectory() as temporary:
        work_dir = Path(args.work_dir or temporary)
        work_dir.mkdir(parents=True, exist_ok=True)
        if any(work_dir.iterdir()):
            raise UserError(f"--work_dir {work_dir} is not empty; name another folder")
        injector = Injector(work_dir, train, args.seed)
        injector.run_undisturbed()
        kills = []
        for number in range(1, args.kills + 1):
            kills.append(injector.kill(number))
            print(kills[-1].line(args.kills), file=stream, flush=True)
    identical = sum(not kill.different for kill in kills)
    text = f"{identical} of {args.kills} identical"
    values = {"identical": identical, "kills": [kill._asdict() for kill in kills]}
    cli.print_result(text, values, args.json)
    if identical < args.kills:
        sys.exit(EXIT_DIFFERENT)


def _parse(argv: Sequence[str] | None) -> Namespace:
    parser = cli.ArgumentParser(
        "Kills trainings at random moments, lets the same command go on, and compares "
        "the result with an undisturbed training's, bit by bit."
    )
    add = parser.add_argument
    add("--kills", type=cli.at_least(1), default=20, help="how many")
    add("--seed", type=cli.at_least(0), default=1, help="of the moments")
    add("--hparams", default=HPARAMS, help="what is trained, on its own corpus")
    add("--strategy", default="one_device", help="as python -m t2t_repro.train")
    add("--replicas", type=cli.at_least(0), default=0, help="likewise")
    add("--work_dir", help="keep data, logs and what differs here; absent or empty")
    args: Namespace = parser.parse_args(argv)
    return args


if __name__ == "__main__":
    cli.run(main)
