"""Puts faults into a copy of the code, one at a time, and runs the tests against each.

    python tools/run_code_faults.py --output before.tsv [--only NAME,...]

Run it before and after the tests are changed: no fault that was caught before may
escape after. The faults are in tools/code_faults/faults.yaml. The tracked files are
copied as they are in the working tree, which stays untouched. The quick tests of a
fault run before the medium ones, up to the first failure; slow tests never run.

A fault is "caught" if a test fails with it and passes without it, and has "escaped" if
all tests pass. "error" means that the tests cannot judge, for example because a file
cannot be imported. --output is written after every fault; a second run with the same
file skips its caught and escaped faults. Exit status 1: not every fault was caught.
"""

import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from code_faults.fault_list import FAULTS_FILE, Fault, check_faults, read_faults
from code_faults.runner import CAUGHT, ESCAPED, Outcome, Runner

from t2t_repro.command_line import cli
from t2t_repro.system.atomic_file import read_lines, write_text_atomically
from t2t_repro.system.errors import UserError

ROOT = Path(__file__).resolve().parents[1]
EXIT_NOT_CAUGHT = 1
_COLUMNS = ["room", "fault", "outcome", "seconds", "failed test"]


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the faults that have no outcome yet, and prints progress and a summary."""
    parser = cli.ArgumentParser("Runs the tests against faults in the code.", False)
    add = parser.add_argument
    add("--output", required=True, help="table of outcomes (TSV); resumed if present")
    add("--only", help="names of faults, separated by commas (default: all)")
    add("--timeout", type=cli.at_least(1), default=1800, help="seconds for each fault")
    add("--faults", default=str(FAULTS_FILE), help="list of faults (YAML)")
    add("--tree", default=str(ROOT), help="git checkout to copy")
    args = parser.parse_args(argv)
    path, tree = Path(args.output), Path(args.tree).resolve()
    listed, outcomes = read_faults(Path(args.faults)), read_outcomes(path)
    check_faults(listed, tree)
    faults = _chosen(listed, args.only)
    waiting = [fault for fault in faults if fault.name not in outcomes]
    if present := len(faults) - len(waiting):
        print(f"{present} of {len(faults)} faults have an outcome in {path}")
    with tempfile.TemporaryDirectory() as copy:
        runner, began = Runner(tree, Path(copy), args.timeout), time.monotonic()
        try:
            for done, fault in enumerate(waiting, 1):
                outcome = outcomes[fault.name] = runner.run(fault)
                write_outcomes(path, listed, outcomes)
                mean = (time.monotonic() - began) / done
                line = f"{fault.name}: {outcome.kind} {outcome.test}".rstrip()
                left = f"{mean * (len(waiting) - done) / 60:.0f} min left"
                print(
                    f"[{done}/{len(waiting)}] {line} ({outcome.seconds:.0f} s; {left})",
                    flush=True,
                )
        finally:  # Also after Ctrl-C.
            print(summary(faults, outcomes))
    if any(outcomes[fault.name].kind != CAUGHT for fault in faults):
        sys.exit(EXIT_NOT_CAUGHT)


def _chosen(faults: Sequence[Fault], names: str | None) -> list[Fault]:
    """Returns the faults that --only names; raises UserError for an unknown name."""
    if names is None:
        return list(faults)
    wanted = set(names.split(","))
    if unknown := wanted - {fault.name for fault in faults}:
        raise UserError(f"--only: there is no fault {min(unknown)} in the list")
    return [fault for fault in faults if fault.name in wanted]


def summary(faults: Sequence[Fault], outcomes: Mapping[str, Outcome]) -> str:
    """Counts the caught faults of each room and names every other fault."""
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
    """Returns the caught and escaped faults of an earlier run, by name."""
    rows = [line.split("\t") for line in read_lines(path)] if path.exists() else []
    if rows and (rows[0] != _COLUMNS or {*map(len, rows)} != {len(_COLUMNS)}):
        raise UserError(f"--output {path} holds something else; name another file")
    found = {row[1]: Outcome(row[2], row[4], float(row[3])) for row in rows[1:]}
    return {k: v for k, v in found.items() if v.kind in (CAUGHT, ESCAPED)}


def write_outcomes(
    path: Path, faults: Sequence[Fault], outcomes: Mapping[str, Outcome]
) -> None:
    """Writes a table with a row for each fault that has an outcome."""
    rows = [_COLUMNS]
    for fault in faults:
        if fault.name in outcomes:
            kind, test, seconds = outcomes[fault.name]
            cells = [fault.room, fault.name, kind, f"{seconds:.1f}", test]
            rows.append([" ".join(cell.split()) for cell in cells])
    write_text_atomically(path, "".join("\t".join(row) + "\n" for row in rows))


if __name__ == "__main__":
    cli.run(main)
