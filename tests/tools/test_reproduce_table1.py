"""Tests of table 1: operations counted by hand, and dependencies of real layers."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from table1.dependency import (
    contiguous_path,
    dilated_convolution,
    path_length,
    reach,
    sequential_operations,
)
from table1.layers import (
    KINDS,
    WITH_PROJECTIONS,
    Sizes,
    example,
    layer_of,
    multiply_adds,
)
from table1.timing import crossover, doubled

from tests import run_command

TOOL = "tools/reproduce_table1.py"
SMALL = Sizes(d=8, kernel=3, radius=2)


def plain_attention(x, radius=None):
    """Computes attention with one head and without projections, query by query."""
    rows = []
    for at, query in enumerate(x):
        near = [
            key
            for position, key in enumerate(x)
            if radius is None or abs(position - at) <= radius
        ]
        weights = np.exp([query @ key / np.sqrt(len(query)) for key in near])
        rows.append((weights / weights.sum()) @ near)
    return np.array(rows)


@pytest.mark.parametrize(
    ("kind", "radius"), [("self-attention", None), ("restricted", 2)]
)
def test_attention_layers_equal_a_plain_implementation(kind, radius):
    x = example(11, 8)
    outputs = layer_of(kind, SMALL)(x)[0]
    expected = plain_attention(x[0].numpy(), radius)
    np.testing.assert_allclose(outputs, expected, atol=1e-5)


@pytest.mark.parametrize("kind", [*KINDS, WITH_PROJECTIONS])
def test_layers_keep_the_shape(kind):
    assert layer_of(kind, SMALL)(example(5, 8, batch=2)).shape == (2, 5, 8)


def test_counts_multiplications():
    # Two matmuls: (n, d) by (d, n), and (n, n) by (n, d).
    assert multiply_adds("self-attention", 10, Sizes(4)) == 2 * 10 * 10 * 4
    # Two (d, d) matrices, for input and state, at ten positions.
    assert multiply_adds("recurrent", 10, Sizes(4)) == 10 * 2 * 4 * 4
    assert multiply_adds("convolutional", 10, Sizes(4, kernel=5)) == 10 * 5 * 4 * 4
    # Two blocks of 5 queries with windows of 9 keys.
    assert multiply_adds("restricted", 10, Sizes(4, radius=2)) == 2 * 10 * 9 * 4
    # As in the paper, the numbers of operations are equal if n = d.
    for d in (8, 64):
        sizes = Sizes(d)
        assert multiply_adds("self-attention", d, sizes) == (
            multiply_adds("recurrent", d, sizes)
        )


@pytest.mark.medium
@pytest.mark.parametrize("n", [3, 8])
def test_counts_sequential_operations_in_the_graph(n):
    assert {kind: sequential_operations(kind, n, SMALL) for kind in KINDS} == {
        "self-attention": 2,  # Q K^T, then the sum of V.
        "recurrent": n,
        "convolutional": 1,
        "restricted": 2,
    }


@pytest.mark.medium
@pytest.mark.parametrize(
    ("kind", "n", "expected"),
    [
        ("self-attention", 16, 1),
        ("recurrent", 8, 7),
        ("recurrent", 16, 15),
        ("restricted", 8, 4),  # Two positions per layer: 7 / 2, rounded up.
        ("restricted", 16, 8),
        ("convolutional", 9, 2),  # Two layers reach 3 ** 2 positions.
        ("convolutional", 10, 3),
        ("convolutional", 27, 3),
        ("convolutional", 28, 4),
        ("self-attention", 1, 0),
    ],
)
def test_path_lengths(kind, n, expected):
    assert path_length(kind, n, SMALL) == expected


def test_convolutions_without_dilation_have_longer_paths():
    assert contiguous_path(9, SMALL) == 8
    assert contiguous_path(9, Sizes(d=8, kernel=5)) == 4


@pytest.mark.parametrize(("kernel", "dilation"), [(3, 1), (3, 4), (4, 2)])
def test_dilated_convolution_equals_keras(kernel, dilation):
    weights = np.random.default_rng(1).normal(size=(kernel, 8, 8)).astype("float32")
    theirs = keras.layers.Conv1D(
        8, kernel, padding="causal", dilation_rate=dilation, use_bias=False
    )
    theirs.build((None, None, 8))
    theirs.set_weights([weights])
    x = example(11, 8)
    ours = dilated_convolution(weights, dilation)
    np.testing.assert_allclose(ours(x), theirs(x), atol=1e-4)


@pytest.mark.parametrize(("layers", "arrives"), [(3, False), (4, True)])
def test_dependencies_of_a_real_stack_agree(layers, arrives):
    """The path length computed from single layers holds for a stack of layers."""
    layer = layer_of("restricted", SMALL)

    def stack(x):
        for _ in range(layers):
            x = layer(x)
        return x

    dependencies = reach(stack, 8, 8)
    assert dependencies[0, 7] == dependencies[7, 0] == arrives


def test_crossover_is_where_costs_are_equal():
    lengths = [16, 32, 64, 128, 256]
    squares = [float(n * n) for n in lengths]
    lines = [100.0 * n for n in lengths]
    assert crossover(lengths, squares, lines) == pytest.approx(100)
    assert crossover(lengths, lines, [value + 1 for value in lines]) is None
    exact = [64.0 * n for n in lengths]
    assert crossover(lengths, squares, exact) == pytest.approx(64)
    assert doubled(lengths, squares) == pytest.approx(4)
    assert doubled([16, 64], [1.0, 4.0]) == pytest.approx(2)


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
    for d in ("16", "32"):
        assert result["crossovers"][d]["operations, recurrent"] == pytest.approx(int(d))
        for kind in (*KINDS, WITH_PROJECTIONS):
            each = result["layers"][kind][d]
            assert len(each["seconds"]) == len(each["operations"]) == 2
            assert min(each["seconds"]) > 0
    assert result["paths"]["recurrent"]["128"] == 127
    assert result["paths"]["self-attention"]["128"] == 1
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"table1.json", "table1.md", "table1.png", "table1.svg"}
    assert result["paths"]["convolutional"]["128"] == 5
    table = (tmp_path / "out" / "table1.md").read_text(encoding="utf-8")
    assert "| Self-Attention (restricted) | O(r n d) |" in table
    assert json.loads((tmp_path / "out/table1.json").read_text("utf-8")) == result


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--lengths", "8"], "--lengths requires at least two lengths"),
        (["--lengths", "16,8"], "--lengths must be in ascending order"),
        (["--widths", "a"], "--widths: must be a whole number of at least 2, not 'a'"),
        (["--widths", "12"], "--widths must be multiples of 8"),
        (["--radius", "0"], "--radius: must be a whole number of at least 1"),
    ],
)
def test_reports_a_mistake_in_one_line(tmp_path, arguments, words):
    result = run_command.run(TOOL, "--output_dir", str(tmp_path / "out"), *arguments)
    assert run_command.is_one_clear_line(result)
    assert words in result.err
    assert not (tmp_path / "out").exists()


def test_reach_follows_the_gradient():
    """The layer moves each vector to the next position."""

    def move(x):
        return tf.roll(x, 1, axis=1) * [[[0.0], [1.0], [1.0], [1.0]]]

    expected = np.eye(4, k=-1, dtype=bool)
    np.testing.assert_array_equal(reach(move, 4, 3), expected)
