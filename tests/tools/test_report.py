"""Tests of benchmark reports: figures, Markdown tables and records."""

import csv
import io
from argparse import Namespace

import pytest
from benchmarks import report

MACHINE = {"cpus": 2, "processor": "P", "load_average": 0.25}


def answer(seconds):
    return {"seconds": seconds, "start_seconds": 9.0, "memory": 3 * 2**20}


def test_figures_of_a_turn_follow_from_its_seconds():
    table = {}
    for seconds in (2.0, 4.0):
        report.add_turn(
            *(table, "a", answer(seconds)),
            **{"tokens": 600, "operations": 8e9, "moved": 10**9, "steps": 4},
        )
    assert table["a"] == {
        "ms": [500.0, 1000.0],
        "target tokens/s": [300.0, 150.0],
        "GFLOP/s": [4.0, 2.0],
        "GB/s": [0.5, 0.25],
        "peak memory (MiB)": 3.0,
        "first step (s)": 9.0,
    }


def test_ratios_compare_median_rounds():
    table = {
        "a": {"target tokens/s": [300.0, 100.0, 200.0]},
        "b": {"target tokens/s": [100.0]},
    }
    pairs = [("a", "b"), ("a", "absent")]
    assert report.ratios(table, pairs) == {"a / b": {"times as fast": 2.0}}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1234.4, "1,234"),
        (3, "3"),
        (0.04321, "0.0432"),
        ([3.0, 1.0, 2.5], "2.5 (3, 1, 2.5)"),
        ([7.0], "7"),
        ("the same", "the same"),
    ],
)
def test_writes_numbers_to_three_digits(value, expected):
    assert report.written(value) == expected


def test_result_text_has_machine_warning_and_tables():
    result = {
        "machine": MACHINE | {"warning": "load average 1.50"},
        "versions": ["PyTorch is skipped"],
        "tables": {"work": {"a": {"ms": [2.0]}, "b": {"MiB": 1}}, "none": {}},
    }
    assert report.text_of(result).splitlines() == [
        "2 CPUs (P), load average 0.25",
        "WARNING: load average 1.50",
        "PyTorch is skipped",
        *("", "work", ""),
        *("| | ms | MiB |", "|---|---|---|", "| a | 2 |  |", "| b |  | 1 |"),
    ]


def test_record_appends_the_figures(tmp_path, monkeypatch, capsys):
    path = tmp_path / "results.csv"
    path.write_text("before\n")
    monkeypatch.setattr(report, "RESULTS", path)
    monkeypatch.setattr("sys.argv", ["benchmark.py", "--record"])
    monkeypatch.setattr(report, "machine", lambda: MACHINE)
    for record in (False, True):
        with report.reported(Namespace(json=False, record=record)) as result:
            result["tables"]["work"] = {"a": {"ms": [2.0, 1500.0, 1200.0], "n": "x"}}
    assert "| a | 1,200 (2, 1,500, 1,200) | x |" in capsys.readouterr().out
    before, *lines = path.read_text().splitlines()
    assert before == "before"
    rows = list(csv.reader(io.StringIO("\n".join(lines))))
    assert [row[4:] for row in rows] == [
        ["work", "a", "ms", "1200"],
        ["work", "a", "n", "x"],
    ]
    assert {tuple(row[2:4]) for row in rows} == {
        ("2 CPUs (P)", "python benchmark.py --record")
    }
    assert all(len(row) == len(report.FIELDS) for row in rows)


def test_prints_an_interrupted_result(capsys):
    with (
        pytest.raises(KeyboardInterrupt),
        report.reported(Namespace(json=False, record=False)) as result,
    ):
        result["tables"]["work"] = {"a": {"ms": [2.0]}}
        raise KeyboardInterrupt
    assert "| a | 2 |" in capsys.readouterr().out
