"""Applies faults to a copy of the code, one at a time, and runs the tests on each.

    python tools/run_code_faults.py --output before.tsv [--only NAME,...]

Run it before and after a change of the tests: no fault that was caught before the
change may escape after it. The list of faults is tools/code_faults/faults.yaml. The
command copies the tracked files of the working tree and does not modify the tree.
For each fault, it runs the quick tests, then the medium tests, up to the first failure.

A fault is "caught" if a test fails with it and passes without it, and "escaped" if all
tests pass. "error" means that the tests failed to run, for example because a file
cannot be imported. --output is written after each fault; a second run with the same
file skips its caught and escaped faults. The exit status is 1 unless all faults were
caught.
"""

import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from code_faults.fault_list import FAULTS_FILE, Fault, check_faults, read_faults
from code_faults.runner import CAUGHT, ESCAPED, Outcome, Runner
from flags import REQUIRED, parser

from t2t_repro.command_line import cli
from t2t_repro.system.atomic_file import read_lines, write_text_atomically
from t2t_repro.system.errors import UserError

ROOT = Path(__file__).resolve().parents[1]
EXIT_NOT_CAUGHT = 1
_COLUMNS = ["room", "fault", "outcome", "seconds", "failed test"]


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the tests on faults without an outcome; prints progress and a summary."""
    args = parser(
        __doc__,
        ("output", cli.path, REQUIRED, "table of outcomes (TSV), resumed if present"),
        ("only", str, None, "names of faults, separated by commas (default: all)"),
        ("timeout", cli.int_range(1), 1800, "time limit per fault in seconds"),
        ("faults", str, str(FAULTS_FILE), "list of faults (YAML)"),
        ("tree", str, str(ROOT), "git checkout to copy"),
        json_flag=False,
    ).parse_args(argv)
    path, tree = Path(args.output), Path(args.tree).resolve()
    listed, outcomes = read_faults(Path(args.faults)), read_outcomes(path)
    check_faults(listed, tree)
    faults = _select(listed, args.only)
    waiting = [fault for fault in faults if fault.name not in outcomes]
    if present := len(faults) - len(waiting):
        print(f"{present} of {len(faults)} faults have an outcome in {path}")
    with tempfile.TemporaryDirectory() as copy:
        runner, began = Runner(tree, Path(copy), args.timeout), time.monotonic()
        try:
            for number, fault in enumerate(waiting, 1):
                outcome = outcomes[fault.name] = runner.run(fault)
                write_outcomes(path, listed, outcomes)
                left = (time.monotonic() - began) * (len(waiting) / number - 1) / 60
                line = f"{fault.name}: {outcome.kind} {outcome.test}".rstrip()
                times = f"{outcome.seconds:.0f} s; {left:.0f} min left"
                print(f"[{number}/{len(waiting)}] {line} ({times})", flush=True)
        finally:  # Prints the summary also after Ctrl-C.
            print(summary(faults, outcomes))
    if any(outcomes[fault.name].kind != CAUGHT for fault in faults):
        sys.exit(EXIT_NOT_CAUGHT)


def _select(faults: Sequence[Fault], names: str | None) -> list[Fault]:
    """Returns the faults selected by --only; raises UserError for an unknown name."""
    if names is None:
        return list(faults)
    selection = set(names.split(","))
    if unknown := selection - {fault.name for fault in faults}:
        raise UserError(
            f"--only: unknown fault {min(unknown)}; use names from the list of faults"
        )
    return [fault for fault in faults if fault.name in selection]


def summary(faults: Sequence[Fault], outcomes: Mapping[str, Outcome]) -> str:
    """Returns the number of caught faults per room and a line per other fault."""
    rows = [(fault, outcomes.get(fault.name, Outcome("not run"))) for fault in faults]
    lines = []
    for room in dict.fromkeys(fault.room for fault in faults):
        caught = [each.kind == CAUGHT for fault, each in rows if fault.room == room]
        lines.append(f"{room}: {sum(caught)} of {len(caught)} caught")
    for fault, (kind, test, _) in rows:
        if kind != CAUGHT:
            lines.append(f"{kind}: {fault.name}: {fault.fault} {test}".rstrip())
    return "\n".join(lines)


def read_outcomes(path: Path) -> dict[str, Outcome]:
    """Returns the outcomes of caught and escaped faults of an earlier run, by name."""
    rows = [line.split("\t") for line in read_lines(path)] if path.exists() else []
    if rows and rows[0] != _COLUMNS:
        raise UserError(
            f"--output {path} is not a table of outcomes; give another file"
        )
    outcomes = {row[1]: Outcome(row[2], row[4], float(row[3])) for row in rows[1:]}
    return {k: v for k, v in outcomes.items() if v.kind in (CAUGHT, ESCAPED)}


def write_outcomes(
    path: Path, faults: Sequence[Fault], outcomes: Mapping[str, Outcome]
) -> None:
    """Writes a table with one row per fault with an outcome."""
    rows = [_COLUMNS]
    for fault in faults:
        if fault.name in outcomes:
            kind, test, seconds = outcomes[fault.name]
            cells = [fault.room, fault.name, kind, f"{seconds:.1f}", test]
            rows.append([" ".join(cell.split()) for cell in cells])
    write_text_atomically(path, "".join("\t".join(row) + "\n" for row in rows))


if __name__ == "__main__":
    cli.run(main)
