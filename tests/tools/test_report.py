"""Tests of benchmark reports: figures, Markdown tables and records."""

from benchmarks import report


def answer(seconds):
    figures = {"start_seconds": 9.0, "memory": 3 * 2**20, "instructions": "oneDNN: A"}
    return {"seconds": seconds} | figures


def test_figures_of_a_turn_follow_from_its_seconds():
    table = {}
    for seconds in (2.0, 4.0):
        report.add_turn(
            *(table, "a", answer(seconds)),
            **{"tokens": 600, "operations": 8e9, "steps": 4},
        )
    assert table["a"] == {
        "ms": [500.0, 1000.0],
        "target tokens/s": [300.0, 150.0],
        "GFLOP/s": [4.0, 2.0],
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
