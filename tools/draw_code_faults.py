"""Draws random faults in the code, as a list for tools/run_code_faults.py.

    python tools/draw_code_faults.py --output drawn.yaml [--count 120] [--seed 1]
    python tools/run_code_faults.py --faults drawn.yaml --output outcomes.tsv

A fault changes one place of an expression or removes one statement (the operators of
mutation testing: DeMillo, Lipton and Sayward 1978, doi:10.1109/C-M.1978.218136). All
places of the rooms have the same chance. Places in annotations, messages and `raise`
statements are left out. The tests of a fault are those of its room, the tests named
after its module first.
"""

import random
from collections.abc import Sequence
from pathlib import Path

import yaml
from code_faults.mutations import find_mutations
from flags import REQUIRED, parser

from t2t_repro.command_line import cli
from t2t_repro.system.atomic_file import write_text_atomically
from t2t_repro.system.errors import UserError

ROOT = Path(__file__).resolve().parents[1]
ROOMS = "runs,data,batches,training,decoding,tokenizers,texts"


def main(argv: Sequence[str] | None = None) -> None:
    """Draws the faults and writes their list."""
    args = parser(
        __doc__,
        ("output", cli.path, REQUIRED, "list of faults (YAML)"),
        ("count", cli.int_range(1), 120, "number of faults"),
        ("seed", cli.int_range(0), 1, "seed of the choice"),
        ("rooms", str, ROOMS, "subpackages, separated by commas"),
        json_flag=False,
    ).parse_args(argv)
    rooms = args.rooms.split(",")
    places = [place for room in rooms for place in list_faults(room)]
    print(f"{len(places)} places in {len(rooms)} rooms")
    if args.count > len(places):
        raise UserError(f"--count {args.count}: there are only {len(places)} places")
    drawn = sorted(random.Random(args.seed).sample(range(len(places)), args.count))
    faults: dict[str, list[dict[str, object]]] = {room: [] for room in rooms}
    for place in drawn:
        fault = places[place]
        faults[str(fault.pop("room"))].append(fault)
    write_text_atomically(Path(args.output), yaml.safe_dump(faults, sort_keys=False))


def list_faults(room: str) -> list[dict[str, object]]:
    """Returns all faults of a room, as rows of the list with their room."""
    folder, tests = ROOT / "t2t_repro" / room, ROOT / "tests" / room
    if not (folder.is_dir() and tests.is_dir()):
        raise UserError(f"--rooms: {room} is not a subpackage with tests")
    faults = []
    for path in sorted(folder.rglob("*.py")):
        own = sorted(tests.rglob(f"test_{path.stem}*.py"))
        files = [str(each.relative_to(ROOT)) for each in (*own, tests)]
        for number, each in enumerate(find_mutations(path.read_text("utf-8")), 1):
            row: dict[str, object] = {
                "room": room,
                "name": f"{path.relative_to(folder).with_suffix('')}:{number}",
                "fault": f"Line {each.line}: {each.before} becomes {each.after}.",
                "file": str(path.relative_to(ROOT)),
                "old": each.old,
                "new": each.new,
                "tests": files,
            }
            faults.append(row)
    return faults


if __name__ == "__main__":
    cli.run(main)
