"""Position signals agree with tensor2tensor's arrays and the paper's formula."""

import numpy as np
import pytest

from t2t_repro.layers.position import LearnedPosition, sinusoid, sinusoid_paper
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


def test_learned_positions_are_rows_and_zero_beyond_the_table():
    layer = LearnedPosition(3, 4)
    layer.build()
    table = np.arange(1.0, 13.0).reshape(3, 4)
    layer.table.assign(table)
    np.testing.assert_array_equal(
        layer(np.array([2, 0, 3, 900])), [table[2], table[0], [0] * 4, [0] * 4]
    )
