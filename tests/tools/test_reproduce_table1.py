"""Tests of table 1: operations counted by hand, and dependencies of real layers."""

import json

import pytest
from table1.dependency import path_length
from table1.layers import Sizes, multiply_adds
from table1.timing import compute_growth, crossover

from tests import run_command

TOOL = "tools/reproduce_table1.py"
SMALL = Sizes(d=8, kernel=3, radius=2)


def test_counts_multiplications():
    # Two matmuls: (n, d) by (d, n), and (n, n) by (n, d).
    assert multiply_adds("self-attention", 10, Sizes(4)) == 2 * 10 * 10 * 4
    # Two (d, d) matrices, for input and state, at ten positions.
    assert multiply_adds("recurrent", 10, Sizes(4)) == 10 * 2 * 4 * 4
    assert multiply_adds("convolutional", 10, Sizes(4, kernel=5)) == 10 * 5 * 4 * 4
    # Two blocks of 5 queries with windows of 9 keys.
    assert multiply_adds("restricted", 10, Sizes(4, radius=2)) == 2 * 10 * 9 * 4


@pytest.mark.medium
@pytest.mark.parametrize(
    ("kind", "n", "expected"),
    [
        ("self-attention", 16, 1),
        ("recurrent", 8, 7),
        ("restricted", 8, 4),  # Two positions per layer: 7 / 2, rounded up.
        ("convolutional", 9, 2),  # Two layers reach 3 ** 2 positions.
        ("convolutional", 10, 3),
    ],
)
def test_path_lengths(kind, n, expected):
    assert path_length(kind, n, SMALL) == expected


def test_crossover_is_where_costs_are_equal():
    lengths = [16, 32, 64, 128, 256]
    squares = [float(n * n) for n in lengths]
    lines = [100.0 * n for n in lengths]
    assert crossover(lengths, squares, lines) == pytest.approx(100)
    assert crossover(lengths, lines, [value + 1 for value in lines]) is None
    assert compute_growth(lengths, squares) == pytest.approx(4)


@pytest.mark.medium
def test_writes_the_table_and_the_figure(tmp_path):
    pytest.importorskip("matplotlib")
    process = run_command.run(
        TOOL,
        *("--lengths", "8,64", "--widths", "16,32", "--repeats", "1"),
        *("--output_dir", str(tmp_path / "out"), "--json"),
    )
    assert process.status == 0, process.err
    result = json.loads(process.out)
    assert result["crossovers"]["16"]["operations, recurrent"] == pytest.approx(16)
    # Attention multiplies Q by K^T, then the weights by V.
    sequential = {kind: each["8"] for kind, each in result["sequential"].items()}
    assert sequential == {
        **{"self-attention": 2, "recurrent": 8, "convolutional": 1, "restricted": 2}
    }
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"table1.json", "table1.md", "table1.png", "table1.svg"}
