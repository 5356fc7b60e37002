"""Tests of TSV logs and of removing rows after a step."""

import os
import resource

import pytest

from t2t_repro.system.errors import UserError
from t2t_repro.training.metrics_log import MetricsLog

HEADER = "step\tloss\n"


@pytest.fixture
def table(tmp_path):
    return MetricsLog(tmp_path / "log.tsv", ("step", "loss"))


def test_a_new_table_has_only_its_header(table):
    table.cut(0)
    assert table.path.read_text() == HEADER
    assert table.steps() == []


def test_returns_the_steps_of_its_rows(table):
    table.cut(0)
    table.add("50", "3.5")
    table.add("100", "2.5")
    assert table.steps() == [50, 100]
    assert table.path.read_text() == f"{HEADER}50\t3.5\n100\t2.5\n"


def test_a_row_is_written_before_it_is_synced(table, monkeypatch):
    table.cut(0)
    synced = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.fstat(file).st_size))
    table.add("50", "3.5")
    assert synced == [len(HEADER + "50\t3.5\n")]


def test_cut_removes_rows_of_later_steps(table):
    table.cut(0)
    for step in (50, 100, 150):
        table.add(str(step), "1")
    table.cut(100)
    assert table.path.read_text() == f"{HEADER}50\t1\n100\t1\n"
    table.cut(99)
    assert table.steps() == [50]


def test_a_row_that_does_not_fit_is_reported(table):
    """The kernel writes its beginning, as on a full disk, and no error."""
    table.cut(0)
    size, limits = len(HEADER), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 3, limits[1]))
    try:
        with pytest.raises(UserError, match=r"cannot write .*log\.tsv: File too large"):
            table.add("50", "3.5")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    table.cut(50)
    assert table.path.read_text() == HEADER


@pytest.mark.parametrize("fragment", ["1", "100", "100\t", "100\t2.5"])
def test_cut_removes_an_incomplete_row(table, fragment):
    table.cut(0)
    table.add("50", "3.5")
    with table.path.open("a") as file:
        file.write(fragment)
    table.cut(1000)
    assert table.path.read_text() == f"{HEADER}50\t3.5\n"


def test_cut_does_not_rewrite_an_unchanged_table(table):
    table.cut(0)
    table.add("50", "3.5")
    before = table.path.stat().st_mtime_ns, table.path.stat().st_ino
    table.cut(50)
    assert (table.path.stat().st_mtime_ns, table.path.stat().st_ino) == before


def test_cut_removes_malformed_rows(table):
    rows = b"x\ty\n\xff\n7\t1\t2\n%s\t1\n8\t1\n" % (b"9" * 5000)
    table.path.write_bytes(b"step\tloss\n" + rows)
    table.cut(100)
    assert table.path.read_text() == f"{HEADER}8\t1\n"
