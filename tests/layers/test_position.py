"""Positional encodings equal tensor2tensor's arrays and the paper's formula."""

import numpy as np
import pytest

from t2t_repro.layers.position import (
    LearnedPosition,
    PositionalEncoding,
    sinusoid,
    sinusoid_paper,
)
from tests import golden


@pytest.mark.parametrize(
    ("name", "start", "d_model"),
    [("50_512", 0, 512), ("odd_9_7", 0, 7), ("start5_12_64", 5, 64)],
)
def test_sinusoid_equals_that_of_tensor2tensor(shared_dir, name, start, d_model):
    expected = golden.load(shared_dir / "t2t/golden/misc.npz")[f"timing/{name}"][0]
    positions = np.arange(start, start + len(expected))
    np.testing.assert_allclose(sinusoid(positions, d_model), expected, atol=2e-5)


def test_last_timescale_is_ten_thousand():
    signal = np.array(sinusoid(np.array([10_000]), 8))
    np.testing.assert_allclose(signal[0, [3, 7]], [np.sin(1), np.cos(1)], atol=1e-4)


@pytest.mark.parametrize("d_model", [2, 16])
def test_sinusoid_paper_equals_the_formula_of_the_paper(d_model):
    expected = np.empty((60, d_model))
    for position in range(60):
        for i in range(d_model // 2):
            angle = position / 10_000 ** (2 * i / d_model)
            expected[position, 2 * i] = np.sin(angle)
            expected[position, 2 * i + 1] = np.cos(angle)
    np.testing.assert_allclose(
        sinusoid_paper(np.arange(60), d_model), expected, atol=2e-5
    )


@pytest.mark.parametrize("formula", [sinusoid, sinusoid_paper])
def test_adds_the_encoding_of_default_or_given_positions(formula):
    layer = PositionalEncoding(formula.__name__)
    x = np.random.default_rng(0).normal(size=(2, 3, 8)).astype("float32")
    signal = np.array(formula(np.arange(9), 8))
    np.testing.assert_allclose(layer(x), x + signal[:3], atol=1e-6)
    np.testing.assert_allclose(layer(x, np.array([6, 0, 8])), x + signal[[6, 0, 8]])
    positions = np.array([[1, 2, 3], [0, 0, 7]])
    np.testing.assert_allclose(layer(x, positions), x + signal[positions], atol=1e-6)


def test_rejects_an_unknown_formula():
    with pytest.raises(ValueError, match="formula 'sinus': use one of sinusoid, "):
        PositionalEncoding("sinus")


def test_learned_positions_are_rows_and_zeros_beyond_the_table():
    layer = LearnedPosition(3)
    layer.build((None, None, 4))
    table = np.arange(1.0, 13.0).reshape(3, 4)
    layer.table.assign(table)
    x = np.full((1, 4, 4), 100.0, "float32")
    expected = [table[2], table[0], [0] * 4, [0] * 4]
    output = layer(x, np.array([2, 0, 3, 900]))
    np.testing.assert_array_equal(output[0], 100 + np.array(expected))
    np.testing.assert_array_equal(layer(x)[0], 100 + np.array([*table, [0] * 4]))
