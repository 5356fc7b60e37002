"""Tests that two short trainings have the recorded loss curves.

After an intended change, `loss_curves.py` updates `tests/data/loss_curves.json`.
"""

import json
from pathlib import Path

import pytest

from tests.training import loss_curves

ROOT = Path(__file__).resolve().parents[2]

# Rounding errors grow with the number of steps. With SSE4.1, AVX2 or without oneDNN (on
# one core) instead of AVX-512, the loss of steps 1 to 50 and 51 to 100 changed by at
# most 2e-6 and 2e-4 of its value.
LOSS_TOLERANCES = (2e-5, 2e-3)


@pytest.mark.medium
@pytest.mark.parametrize("name", loss_curves.NAMES)
def test_a_short_training_has_the_committed_loss_curve(
    name, tmp_path, monkeypatch, forked_python
):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    committed = json.loads(loss_curves.CURVES.read_text(encoding="utf-8"))[name]
    curve = loss_curves.curve(name, tmp_path)
    for row, expected, tolerance in zip(curve, committed, LOSS_TOLERANCES, strict=True):
        assert row.pop("loss") == pytest.approx(expected.pop("loss"), rel=tolerance)
        assert row == pytest.approx(expected, rel=1e-6)
