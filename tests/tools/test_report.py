"""Tests of benchmark reports: figures, Markdown tables and records."""

import csv
import io
import os
import signal
from argparse import Namespace

import pytest
from benchmarks import report

from t2t_repro.system.errors import UserError

MACHINE = {"cpus": 2, "processor": "P", "load_average": 0.25}


def answer(seconds):
    figures = {"start_seconds": 9.0, "memory": 3 * 2**20, "instructions": "oneDNN: A"}
    return {"seconds": seconds} | figures


def raise_user_error():
    raise UserError("a program failed")


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
        "instruction set": "oneDNN: A",
    }


def test_ratios_compare_median_rounds():
    table = {
        "a": {"target tokens/s": [300.0, 100.0, 200.0], "x": [1.0]},
        "b": {"target tokens/s": [100.0]},
    }
    pairs = [("a", "b"), ("a", "absent")]
    ratios = {"a / b": {"target tokens/s": 2.0}}
    assert report.ratios(table, pairs) == ratios
    assert report.ratios(table, pairs, ["target tokens/s", "x"]) == ratios


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
    for variable in report.LIMITS:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
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
        ("2 CPUs (P)", "ONEDNN_MAX_CPU_ISA=AVX2 python benchmark.py --record")
    }
    assert all(len(row) == len(report.FIELDS) for row in rows)


@pytest.mark.parametrize(
    "end", [lambda: os.kill(os.getpid(), signal.SIGTERM), raise_user_error]
)
def test_prints_the_figures_before_an_interruption(end, capsys):
    before = signal.getsignal(signal.SIGTERM)
    with (
        pytest.raises((KeyboardInterrupt, UserError)),
        report.reported(Namespace(json=False, record=False)) as result,
    ):
        result["tables"]["work"] = {"a": {"ms": [2.0]}}
        end()
    assert "| a | 2 |" in capsys.readouterr().out
    assert signal.getsignal(signal.SIGTERM) == before
    with pytest.raises(UserError), report.reported(Namespace(json=False)):
        raise_user_error()
    assert capsys.readouterr().out == ""
