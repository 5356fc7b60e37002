"""Tests of the documentation tables generated from results.csv."""

import re

from benchmarks import tables
from benchmarks.report import FIELDS, RESULTS

from tests import run_command

TOOL = "tools/benchmarks/tables.py"


def test_all_pages_match_the_records():
    result = run_command.run(TOOL, "--check")
    assert (result.status, result.out) == (0, "all pages match\n")


def test_records_have_no_empty_labels_or_values():
    assert RESULTS.read_text().splitlines()[0] == ",".join(FIELDS)
    for each in tables.read_records():
        assert list(each) == list(FIELDS)
        assert all(each[name] for name in ("table", "row", "figure", "value")), each


def test_the_written_table_has_only_recorded_figures():
    page = (tables.DOCS / "speed.md").read_text(encoding="utf-8")
    section = page.split("\n## Start, memory and data\n")[1].split("\n## ")[0]
    rows = [line.split(" | ") for line in section.splitlines() if line[:1] == "|"][2:]
    assert rows
    for _, figures, machine, _ in rows:
        place = "" if machine == "not recorded" else machine
        recorded = {
            each["value"]
            for each in tables.read_records()
            if place in each["machine"] and (place or not each["machine"])
        }
        numbers = re.findall(r"(?<![\w.,])\d[\d,.]*", figures)
        assert {number.strip(",").replace(",", "") for number in numbers} <= recorded
