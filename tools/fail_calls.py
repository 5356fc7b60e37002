"""Fails the system calls of commands one at a time, and checks the remaining files.

    python tools/fail_calls.py --output calls.tsv [--only average,datagen]

An operation, such as a command that averages checkpoints, runs once for each of its
calls that open, write, sync, rename or delete a file of its folder or create a folder
in it. This call fails with ENOSPC. EIO and EINTR are tried with --sample random calls
of each operation. A case is a fault unless

- the operation succeeds with the files of a run without failures, or it prints one
  line, leaves only whole files, and the same command then writes the same files;
- no temporary file is left, except where a deletion failed.

--output is written after each case; a second run with the same file skips its cases.
The exit status is 1 if there are faults.
"""

import errno
import json
import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from call_faults import forks
from call_faults.operations import OPERATIONS, Operation, train_model
from flags import REQUIRED, choice, parser, several
from inject_faults import TABLES, rows_without_speed

from t2t_repro.command_line import cli
from t2t_repro.serving.digests import verify
from t2t_repro.serving.versions import EXTRA_FOLDER
from t2t_repro.system.atomic_file import read_lines, write_text_atomically
from t2t_repro.system.errors import UserError

EXIT_FAULTS = 1
FAULT = "FAULT"
_SAMPLED = ("EIO", "EINTR")
_COLUMNS = ["operation", "error", "number", "outcome", "call", "seconds", "message"]
# Calls of a deletion, which opens each folder.
_DELETES = re.compile(r"unlink|open \S*\.writing-over-[^/]*$")
# Files of an unfinished output or training, whose next run removes them; files with the
# times of their events, and checkpoints that a resumed training has set aside.
_UNFINISHED = re.compile(r"(^|/)\.|\.partial(\.journal)?$|(^|/)training\.lock$")
_IGNORED = re.compile(r"(^|/)(tensorboard|damaged-step-\d+)(/|$)")
# Files of a SavedModel whose bytes TensorFlow does not repeat, and their digests.
_VARYING = ("saved_model.pb", "fingerprint.pb")
_DIGESTS = re.compile(rf"^[0-9a-f]{{64}}  (?={'|'.join(_VARYING)})".encode(), re.M)


class Outcome(NamedTuple):
    """Outcome of one failing call.

    Attributes:
        kind: "succeeded" although the call failed, "refused" with one line, "complete"
            if the line came after the last file, "not reached", or `FAULT`.
        call: Name and path of the call.
        seconds: Duration of the case.
        message: Cause of a fault, or the line.
    """

    kind: str
    call: str
    seconds: float
    message: str


class Harness:
    """Runs operations in copies of a folder with a trained model.

    Args:
        work_dir: Empty folder.
    """

    def __init__(self, work_dir: Path) -> None:
        self._work_dir = work_dir
        self._case = work_dir / "case"
        self._references: dict[str, tuple[int, dict[str, Any]]] = {}
        forks.start_server(work_dir)
        (work_dir / "model").mkdir()
        self._require(forks.run(work_dir / "model", train_model))

    def count_calls(self, name: str) -> int:
        """Runs an operation without failures; returns the number of its calls."""
        if name not in self._references:
            seed, prepare = self._work_dir / name, OPERATIONS[name].prepare
            shutil.copytree(self._work_dir / "model", seed)
            if prepare is not None:
                self._require(forks.run(seed, prepare))
            result = self._run(name)
            self._require(result)
            self._references[name] = result.calls, snapshot(self._case)
        return self._references[name][0]

    def fail(self, name: str, error: str, number: int) -> Outcome:
        """Fails one call of an operation, runs it again and compares the files."""
        began = time.monotonic()
        self.count_calls(name)
        reference = self._references[name][1]
        before = snapshot(self._work_dir / name)
        first = self._run(name, number=number, error=getattr(errno, error))
        after = snapshot(self._case)
        line = first.err.strip().rpartition("\n")[2]
        call = first.failed.replace(f"{self._case}/", "")
        deletes = bool(_DELETES.match(call))
        kind, fault = "refused", ""
        if not call:
            kind = "not reached"
        elif first.status == 0:
            kind, fault = "succeeded", compare(after, reference, deletes)
        elif first.status != cli.EXIT_USER_ERROR or not is_clear(first.err):
            fault = f"status {first.status}: {line}"
        elif after == before:
            pass  # The same command would repeat the run without failures.
        elif damage := find_damage(OPERATIONS[name], before, after, reference):
            fault = f"left {damage} after {line}"
        else:
            again = self._run(name, keep=True)
            fault = compare(snapshot(self._case), reference, deletes)
            if again.status != 0 and not fault:
                kind = "complete"
            if fault and again.status != 0:
                fault = f"again: {again.err.strip()[-300:]}"
        seconds = time.monotonic() - began
        return Outcome(FAULT if fault else kind, call, seconds, fault or line)

    def _run(self, name: str, keep: bool = False, **fault: Any) -> forks.Result:
        if not keep:
            shutil.rmtree(self._case, ignore_errors=True)
            shutil.copytree(self._work_dir / name, self._case)
        command = OPERATIONS[name].command.split()
        return forks.run(self._case, forks.run_command, *command, **fault)

    def _require(self, result: forks.Result) -> None:
        if result.status != 0:
            raise UserError(f"an operation fails by itself: {result.err.strip()}")


def is_clear(err: str) -> bool:
    """Returns whether an output ends with a message of one line."""
    last = err.strip().rpartition("\n")[2]
    return last.startswith("error: ") and "Traceback" not in err


def snapshot(folder: Path) -> dict[str, Any]:
    """Returns the contents of each file by path, without times; b"" for each folder.

    The number of an export's version is replaced, because a second run writes another.
    """
    files = list(folder.rglob("*"))
    names = [path.relative_to(folder).as_posix() for path in files]
    return {
        re.sub(r"^export/\d+(?=/|$)", "export/1", name): _contents(path)
        for name, path in zip(names, files, strict=True)
        if not _IGNORED.search(name)
    }


def _contents(path: Path) -> Any:
    """Returns the contents of a file, without times and digests if it is whole."""
    if path.is_dir():
        return b""
    try:
        if path.name in _VARYING:
            return verify(path.parent)
        if path.parent.name == EXTRA_FOLDER:
            return _DIGESTS.sub(b"", path.read_bytes())
        if path.name == "checkpoint.json":
            values = json.loads(path.read_bytes())
            return {k: v for k, v in values.items() if k not in ("saved_at", "sha256")}
        if path.name in TABLES:
            return rows_without_speed(path)
    except (ValueError, LookupError, UserError):
        pass
    return path.read_bytes()


def compare(
    actual: Mapping[str, Any], expected: Mapping[str, Any], with_temporary: bool
) -> str:
    """Returns the name of a file that differs, or ""; ignores temporary files if so."""
    for name in sorted(actual.keys() | expected.keys()):
        if with_temporary and _UNFINISHED.search(name):
            continue
        if actual.get(name) != expected.get(name):
            return f"{name} differs"
    return ""


def find_damage(
    operation: Operation,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    reference: Mapping[str, Any],
) -> str:
    """Returns a file that is half-written or missing in a folder, or "".

    A table gets row after row, and a resumed training removes an incomplete one.
    """
    for name, contents in after.items():
        whole = (before.get(name), reference.get(name))
        grows = _UNFINISHED.search(name) or Path(name).name in TABLES
        if contents not in whole and not grows:
            return f"half-written {name}"
    for name in reference.keys() - after.keys():
        for parent in Path(name).parents:
            is_whole = any(parent.match(pattern) for pattern in operation.whole)
            exists = any(f"{other}/".startswith(f"{parent}/") for other in after)
            if is_whole and exists:
                return f"{parent} without {name}"
    return ""


def plan(
    harness: Harness, names: Sequence[str], every: int, sample: int, seed: int
) -> list[tuple[str, str, int]]:
    """Returns the cases: operation, error and number of the call."""
    cases = []
    for name in names:
        numbers = range(1, harness.count_calls(name) + 1)
        cases += [(name, "ENOSPC", number) for number in numbers[::every]]
        for error in _SAMPLED:
            generator = random.Random(f"{seed} {name} {error}")
            chosen = generator.sample(numbers, min(sample, len(numbers)))
            cases += [(name, error, number) for number in sorted(chosen)]
    return cases


def read_outcomes(path: Path) -> dict[tuple[str, str, int], Outcome]:
    """Returns the outcomes of an earlier run by case."""
    rows = [line.split("\t") for line in read_lines(path)] if path.exists() else []
    if rows and rows[0] != _COLUMNS:
        raise UserError(f"--output {path} is not a table of outcomes; name a new file")
    return {
        (row[0], row[1], int(row[2])): Outcome(row[3], row[4], float(row[5]), row[6])
        for row in rows[1:]
    }


def write_outcomes(
    path: Path, outcomes: Mapping[tuple[str, str, int], Outcome]
) -> None:
    """Writes a table with one row per case."""
    rows = [_COLUMNS]
    for case, (kind, call, seconds, message) in outcomes.items():
        text = " ".join(message.split())
        rows.append([*map(str, case), kind, call, f"{seconds:.1f}", text])
    write_text_atomically(path, "".join("\t".join(row) + "\n" for row in rows))


def summary(outcomes: Mapping[tuple[str, str, int], Outcome]) -> str:
    """Returns a line for each operation and error, and one for each fault."""
    groups: dict[str, Counter[str]] = {}
    lines = []
    for (name, error, number), outcome in outcomes.items():
        groups.setdefault(f"{name} {error}", Counter())[outcome.kind] += 1
        if outcome.kind == FAULT:
            lines.append(f"{name} {error} {number} ({outcome.call}): {outcome.message}")
    for group, kinds in groups.items():
        parts = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        lines.append(f"{group}: {kinds.total()} calls: {parts}")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the cases without an outcome; prints progress and a summary."""
    args = parser(
        __doc__,
        ("output", cli.path, REQUIRED, "table of outcomes (TSV), resumed if present"),
        ("only", several(choice(OPERATIONS)), [*OPERATIONS], "operations"),
        ("every", cli.int_range(1), 1, "fail every n-th call with ENOSPC"),
        ("sample", cli.int_range(0), 30, "number of calls for each of EIO and EINTR"),
        ("seed", cli.int_range(0), 1, "random seed of the sample"),
        json_flag=False,
    ).parse_args(argv)
    path = Path(args.output).absolute()
    outcomes = read_outcomes(path)
    with tempfile.TemporaryDirectory() as folder:
        harness = Harness(Path(os.path.realpath(folder)))
        cases = plan(harness, args.only, args.every, args.sample, args.seed)
        waiting = [case for case in cases if case not in outcomes]
        began = time.monotonic()
        try:
            for number, case in enumerate(waiting, 1):
                outcome = outcomes[case] = harness.fail(*case)
                write_outcomes(path, outcomes)
                left = (time.monotonic() - began) * (len(waiting) / number - 1) / 60
                line = f"{' '.join(map(str, case))} ({outcome.call}): {outcome.kind}"
                print(
                    f"[{number}/{len(waiting)}] {line} ({left:.0f} min left)",
                    flush=True,
                )
        finally:  # Prints the summary also after Ctrl-C.
            print(summary(outcomes))
    if any(outcome.kind == FAULT for outcome in outcomes.values()):
        sys.exit(EXIT_FAULTS)


if __name__ == "__main__":
    cli.run(main)
