"""Position signals agree with tensor2tensor's arrays and the paper's formula."""

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
def test_the_sinusoid_is_tensor2tensors(shared_dir, name, start, d_model):
    expected = golden.load(shared_dir / "t2t/golden/misc.npz")[f"timing/{name}"][0]
    positions = np.arange(start, start + len(expected))
    np.testing.assert_allclose(sinusoid(positions, d_model), expected, atol=2e-5)


def test_tensor2tensors_last_timescale_is_ten_thousand():
    signal = np.array(sinusoid(np.array([10_000]), 8))
    np.testing.assert_allclose(signal[0, [3, 7]], [np.sin(1), np.cos(1)], atol=1e-4)


@pytest.mark.parametrize("d_model", [2, 16])
def test_the_papers_sinusoid_is_its_formula(d_model):
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
def test_the_signal_is_added_at_places_counted_from_zero_or_given(formula):
    layer = PositionalEncoding(formula.__name__)
    x = np.random.default_rng(0).normal(size=(2, 3, 8)).astype("float32")
    signal = np.array(formula(np.arange(9), 8))
    np.testing.assert_allclose(layer(x), x + signal[:3], atol=1e-6)
    np.testing.assert_allclose(layer(x, np.array([6, 0, 8])), x + signal[[6, 0, 8]])
    places = np.array([[1, 2, 3], [0, 0, 7]])
    np.testing.assert_allclose(layer(x, places), x + signal[places], atol=1e-6)


def test_another_formula_is_refused():
    with pytest.raises(ValueError, match="formula 'sinus': use one of sinusoid, "):
        PositionalEncoding("sinus")


def test_learned_positions_are_rows_and_nothing_beyond_the_table():
    layer = LearnedPosition(3)
    layer.build((None, None, 4))
    table = np.arange(1.0, 13.0).reshape(3, 4)
    layer.table.assign(table)
    x = np.full((1, 4, 4), 100.0, "float32")
    expected = [table[2], table[0], [0] * 4, [0] * 4]
    found = layer(x, np.array([2, 0, 3, 900]))
    np.testing.assert_array_equal(found[0], 100 + np.array(expected))
    np.testing.assert_array_equal(layer(x)[0], 100 + np.array([*table, [0] * 4]))
