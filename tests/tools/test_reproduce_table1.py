"""Table 1: costs by arithmetic, and dependencies by gradients of real layers."""

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
    """Attention of one head without projections, word by word."""
    rows = []
    for at, query in enumerate(x):
        near = [
            key
            for place, key in enumerate(x)
            if radius is None or abs(place - at) <= radius
        ]
        weights = np.exp([query @ key / np.sqrt(len(query)) for key in near])
        rows.append((weights / weights.sum()) @ near)
    return np.array(rows)


@pytest.mark.parametrize(
    ("kind", "radius"), [("self-attention", None), ("restricted", 2)]
)
def test_the_layers_are_what_they_are_called(kind, radius):
    x = example(11, 8)
    found = layer_of(kind, SMALL)(x)[0]
    np.testing.assert_allclose(found, plain_attention(x[0].numpy(), radius), atol=1e-5)


@pytest.mark.parametrize("kind", [*KINDS, WITH_PROJECTIONS])
def test_every_layer_keeps_its_shape(kind):
    assert layer_of(kind, SMALL)(example(5, 8, batch=2)).shape == (2, 5, 8)


def test_multiplications_are_counted_by_hand():
    # Two products of (n, d) and (d, n), (n, n) and (n, d).
    assert multiply_adds("self-attention", 10, Sizes(4)) == 2 * 10 * 10 * 4
    # Input and state, each by a (d, d) matrix, at ten positions.
    assert multiply_adds("recurrent", 10, Sizes(4)) == 10 * 2 * 4 * 4
    assert multiply_adds("convolutional", 10, Sizes(4, kernel=5)) == 10 * 5 * 4 * 4
    # Two blocks of 5 queries, windows of 9 keys.
    assert multiply_adds("restricted", 10, Sizes(4, radius=2)) == 2 * 10 * 9 * 4
    # The crossover of the paper: as many operations where n = d.
    for d in (8, 64):
        sizes = Sizes(d)
        assert multiply_adds("self-attention", d, sizes) == (
            multiply_adds("recurrent", d, sizes)
        )


@pytest.mark.medium
@pytest.mark.parametrize("n", [3, 8])
def test_sequential_operations_are_counted_in_the_graph(n):
    found = {kind: sequential_operations(kind, n, SMALL) for kind in KINDS}
    assert found == {
        "self-attention": 2,  # Scores, then values.
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
        ("restricted", 8, 4),  # Two positions a layer: 7 / 2, rounded up.
        ("restricted", 16, 8),
        ("convolutional", 9, 2),  # 3 ** 2 positions are seen by two layers.
        ("convolutional", 10, 3),
        ("convolutional", 27, 3),
        ("convolutional", 28, 4),
        ("self-attention", 1, 0),
    ],
)
def test_paths_are_found_by_gradients(kind, n, expected):
    assert path_length(kind, n, SMALL) == expected


def test_plain_convolutions_have_longer_paths():
    assert contiguous_path(9, SMALL) == 8
    assert contiguous_path(9, Sizes(d=8, kernel=5)) == 4


@pytest.mark.parametrize(("kernel", "dilation"), [(3, 1), (3, 4), (4, 2)])
def test_a_dilated_convolution_is_keras_own(kernel, dilation):
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
def test_a_real_stack_agrees(layers, arrives):
    """What is added up of single layers holds for layers upon each other."""
    layer = layer_of("restricted", SMALL)

    def stack(x):
        for _ in range(layers):
            x = layer(x)
        return x

    found = reach(stack, 8, 8)
    assert found[0, 7] == found[7, 0] == arrives


def test_costs_cross_where_they_are_equal():
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
def test_the_tool_writes_the_table_and_the_picture(tmp_path):
    pytest.importorskip("matplotlib")
    done = run_command.run(
        TOOL,
        *("--lengths", "8,16,32,64", "--widths", "16,32", "--repeats", "1"),
        *("--output_dir", str(tmp_path / "out"), "--json"),
    )
    assert done.status == 0, done.err
    found = json.loads(done.out)
    for d in ("16", "32"):
        assert found["crossovers"][d]["operations, recurrent"] == pytest.approx(int(d))
        for kind in (*KINDS, WITH_PROJECTIONS):
            each = found["layers"][kind][d]
            assert len(each["seconds"]) == len(each["operations"]) == 4
            assert min(each["seconds"]) > 0
    assert found["paths"]["recurrent"]["128"] == 127
    assert found["paths"]["self-attention"]["128"] == 1
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"table1.json", "table1.md", "table1.png", "table1.svg"}
    assert found["paths"]["convolutional"]["128"] == 5
    table = (tmp_path / "out" / "table1.md").read_text(encoding="utf-8")
    assert "| Self-Attention (restricted) | O(r n d) |" in table
    assert json.loads((tmp_path / "out/table1.json").read_text("utf-8")) == found


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--lengths", "8"], "--lengths needs two lengths"),
        (["--lengths", "16,8"], "--lengths must ascend"),
        (["--widths", "a"], "--widths: must be a whole number of at least 2, not 'a'"),
        (["--widths", "12"], "--widths must be multiples of 8"),
        (["--radius", "0"], "--radius: must be a whole number of at least 1"),
    ],
)
def test_a_mistake_is_one_clear_line(tmp_path, arguments, words):
    done = run_command.run(TOOL, "--output_dir", str(tmp_path / "out"), *arguments)
    assert run_command.is_one_clear_line(done)
    assert words in done.err
    assert not (tmp_path / "out").exists()


def test_what_a_layer_reaches_is_read_off_its_gradient():
    """A layer that hands each vector to its right neighbour."""

    def moved(x):
        return tf.roll(x, 1, axis=1) * [[[0.0], [1.0], [1.0], [1.0]]]

    expected = np.eye(4, k=-1, dtype=bool)
    np.testing.assert_array_equal(reach(moved, 4, 3), expected)
