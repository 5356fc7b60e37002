"""Writes tables of recorded benchmark results into the pages of docs/.

    python tools/benchmarks/tables.py [--check]

A page marks the place of a table with two comments. TITLE is the table's title in
`results.csv`:

    <!-- results: TITLE -->
    <!-- end of results -->

`TITLE | FIELD=PATTERN; PATTERN` selects figures by a field of the records, such as
date or row, that matches one of the shell patterns. `TITLE | machines` has one column
per machine, with the figures of its newest run. `--check` writes nothing and exits with
status 1 if a page differs from the records.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from flags import parser

from benchmarks.report import RESULTS, markdown
from t2t_repro.command_line import cli
from t2t_repro.system.errors import UserError

DOCS = Path(__file__).resolve().parents[2] / "docs"
MACHINES = "machines"
_PLACE = re.compile(
    r"(<!-- results: (.+?) -->\n).*?(?=<!-- end of results -->)", re.DOTALL
)
_LARGE = re.compile(r"(?<![\d.])\d{4,}")


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, and writes or checks all pages."""
    check = ("check", bool, False, "compare the pages without writing them")
    args = parser(__doc__, check).parse_args(argv)
    records = read_records()
    different = []
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        new = insert_tables(text, records)
        if new != text:
            different.append(str(page.relative_to(DOCS)))
            if not args.check:
                page.write_text(new, encoding="utf-8")
    change = "differ from the records" if args.check else "updated"
    pages = f"{change}: {', '.join(different)}" if different else "all pages match"
    cli.print_result(pages, {"pages": different}, args.json)
    if args.check and different:
        sys.exit(1)


def read_records() -> list[dict[str, str]]:
    """Returns the rows of `results.csv`, each as field -> text."""
    with RESULTS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def insert_tables(text: str, records: Sequence[dict[str, str]]) -> str:
    """Returns a page with its tables replaced by the recorded figures.

    Raises UserError for a table without records, or a cell with several records.
    """
    return _PLACE.sub(lambda place: f"{place[1]}{_table(place[2], records)}", text)


def _table(description: str, records: Sequence[dict[str, str]]) -> str:
    title, *parts = description.split(" | ")
    by_machine = MACHINES in parts
    selection = [part.partition("=") for part in parts if part != MACHINES]
    selected = [
        each
        for each in records
        if each["table"] == title
        and all(_matches(each, field, patterns) for field, _, patterns in selection)
    ]
    if by_machine:
        selected = _select_newest(selected)
    one_row = len({each["row"] for each in selected}) == 1
    rows: dict[str, dict[str, str]] = {}
    for each in selected:
        row, figure = each["row"], each["figure"]
        if by_machine:
            row, figure = figure if one_row else f"{row}: {figure}", each["machine"]
        row = re.sub("^t2t_repro", "**t2t_repro**", row)
        if figure in rows.setdefault(row, {}):
            raise UserError(
                f"{RESULTS.name} has several values of {row}, {figure} in table "
                f"{description!r}: select a date, machine or commit in the marker"
            )
        value = _LARGE.sub(lambda number: f"{int(number[0]):,}", each["value"])
        rows[row][figure] = value
    if not rows:
        raise UserError(f"{RESULTS.name} lacks the table {description!r}")
    return "\n".join(["", *markdown(rows), "", ""])


def _matches(each: dict[str, str], field: str, patterns: str) -> bool:
    """Returns whether a field of a record matches one of the patterns."""
    value = each.get(field, "")
    return any(fnmatchcase(value, pattern) for pattern in patterns.split("; "))


def _select_newest(records: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """Returns the records of each machine's last run."""
    runs = {each["machine"]: (each["date"], each["commit"]) for each in records}
    return [e for e in records if (e["date"], e["commit"]) == runs[e["machine"]]]


if __name__ == "__main__":
    cli.run(main)
