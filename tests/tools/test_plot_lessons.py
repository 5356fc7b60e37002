"""Tests of the figures and of the numbers in them."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from figures import norm_order, positions, scaling

from t2t_repro.data.prepared_data import prepare
from t2t_repro.hparams import HParams
from t2t_repro.problems import create
from tests import run_command, tiny

TOOL = "tools/plot_lessons.py"


def test_a_shift_rotates_each_sine_and_cosine():
    """With two channels, the rotation angle is the shift in radians."""
    np.testing.assert_allclose(
        positions.shift_map(3, 2),
        [[np.cos(3), np.sin(3)], [-np.sin(3), np.cos(3)]],
        atol=1e-12,
    )


def test_gradient_size_is_the_norm_of_the_softmax_jacobian():
    # The Jacobian diag(p) - p p^T of two equal weights has the entries 1/4 and -1/4.
    assert scaling.gradient_size(np.zeros((1, 2))) == pytest.approx(0.5)
    # The gradient vanishes if one key has all the weight.
    assert scaling.gradient_size(np.array([[1e4, 0, 0]])) == 0


@pytest.mark.medium
def test_draws_the_quick_figures_by_default(tmp_path):
    pytest.importorskip("matplotlib")
    process = run_command.run(TOOL, "--output_dir", str(tmp_path / "out"), "--json")
    assert process.status == 0, process.err
    result = json.loads(process.out)
    assert set(result) == {
        *("positions", "order", "scaling", "schedule", "masks", "norms")
    }
    for each in result.values():
        png, svg = (Path(path) for path in each["files"])
        assert png.read_bytes().startswith(b"\x89PNG")
        assert ET.parse(svg).getroot().tag.endswith("svg")
    assert result["positions"]["numbers"]["largest_map_error"] < 1e-4
    peaks = result["schedule"]["numbers"]["largest_rate"]
    peak = (512 * 4000) ** -0.5
    assert peaks["d_model 512, warm-up 4000"] == pytest.approx(peak, rel=1e-3)


@pytest.mark.medium
def test_silences_the_heads_of_a_trained_model(trained, tmp_path):
    pytest.importorskip("matplotlib")
    process = run_command.run(
        *(TOOL, "--only", "heads", "--output_dir", str(tmp_path), "--json"),
        *("--model_dir", str(trained.model_dir), "--lines", "3"),
        *("--source_file", str(trained.data_dir / "test.en")),
        *("--reference_file", str(trained.data_dir / "test.de")),
    )
    assert process.status == 0, process.err
    numbers = json.loads(process.out)["heads"]["numbers"]
    # One layer with two heads per kind of attention.
    assert [np.shape(each) for each in numbers["change"].values()] == [(1, 2)] * 3


@pytest.mark.medium
def test_short_training_runs_reduce_the_loss(tmp_path):
    tiny.write_corpus(tmp_path / "data")
    sizes = {"vocab_size": tiny.VOCAB_SIZE, "d_model": 16, "d_ff": 32, "num_heads": 2}
    rate = {"warmup_steps": 5, "learning_rate_scale": 0.1}
    hparams = HParams(
        **sizes, **rate, num_layers=1, tokens_per_batch=256, max_length=32
    )
    problem = create("files", str(tmp_path / "data"), "en", "de")
    data = prepare(problem, hparams, tmp_path / "prepared", lambda line: None)
    losses = norm_order.losses(hparams, data, 20)
    # The untrained model's distribution is nearly uniform over 300 pieces.
    assert losses[0] == pytest.approx(np.log(300), rel=0.2)
    assert norm_order.smooth(losses)[-1] < losses[0] - 0.3
