"""Tests of the documentation tables generated from results.csv."""

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
