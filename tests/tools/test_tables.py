"""Tests of the documentation tables generated from results.csv."""

import pytest
from benchmarks import tables
from benchmarks.report import FIELDS, RESULTS

from t2t_repro.system.errors import UserError
from tests import run_command

TOOL = "tools/benchmarks/tables.py"
PAGE = "Before.\n\n<!-- results: {} -->\nold\n<!-- end of results -->\n\nAfter.\n"


def record(row, figure, value, date="2026-01-02", machine="M", table="t"):
    names = dict.fromkeys(FIELDS, "") | {"date": date, "machine": machine}
    return names | {"table": table, "row": row, "figure": figure, "value": value}


RECORDS = [
    record("t2t_repro float32", "tokens/s", "12345"),
    record("t2t_repro float32", "seconds", "0.0432"),
    record("other", "seconds", "1000, 999"),
    record("other", "seconds", "7", date="2026-01-03", machine="N"),
    record("other", "seconds", "8", table="another"),
]


def test_all_pages_match_the_records():
    result = run_command.run(TOOL, "--check")
    assert (result.status, result.out) == (0, "all pages match\n")


def test_records_have_no_empty_labels_or_values():
    assert RESULTS.read_text().splitlines()[0] == ",".join(FIELDS)
    for each in tables.read_records():
        assert list(each) == list(FIELDS)
        assert all(each[name] for name in ("table", "row", "figure", "value")), each


def test_selects_figures_by_title_and_date():
    page = tables.with_tables(PAGE.format("t | 2026-01-02"), RECORDS)
    assert page.splitlines() == [
        *("Before.", "", "<!-- results: t | 2026-01-02 -->", ""),
        "| | tokens/s | seconds |",
        "|---|---|---|",
        "| **t2t_repro** float32 | 12,345 | 0.0432 |",
        "| other |  | 1,000, 999 |",
        *("", "<!-- end of results -->", "", "After."),
    ]
    assert tables.with_tables(page, RECORDS) == page


def test_machines_as_columns():
    page = tables.with_tables(PAGE.format("t | machines"), RECORDS)
    assert "| | M | N |" in page
    assert "| other: seconds | 1,000, 999 | 7 |" in page


@pytest.mark.parametrize(
    ("title", "words"),
    [("t", "has several values of other, seconds"), ("x", "lacks the table")],
)
def test_rejects_an_ambiguous_or_unknown_table(title, words):
    with pytest.raises(UserError, match=words):
        tables.with_tables(PAGE.format(title), RECORDS)
