"""Two short trainings have the losses they had when their curves were committed.

`loss_curves.py` made what `tests/data/loss_curves.json` holds, and says how it is made
anew where a change is meant.
"""

import json
from pathlib import Path

import pytest

from tests.training import loss_curves

ROOT = Path(__file__).resolve().parents[2]

# Rounding grows with the updates. With other instructions (SSE4.1, AVX2, without oneDNN
# on one core) than AVX-512 the loss of updates 1 to 50, 51 to 100 and 101 to 150 was
# another by 2e-6, 2e-4 and 1e-3 of itself at most, the very small model's by nothing.
LOSS_TOLERANCES = (2e-5, 2e-3, 1e-2)


@pytest.mark.medium
@pytest.mark.parametrize("name", loss_curves.NAMES)
def test_a_short_training_has_the_committed_loss_curve(name, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    committed = json.loads(loss_curves.CURVES.read_text(encoding="utf-8"))[name]
    found = loss_curves.curve(name, tmp_path)
    for row, expected, tolerance in zip(found, committed, LOSS_TOLERANCES, strict=True):
        assert row.pop("loss") == pytest.approx(expected.pop("loss"), rel=tolerance)
        assert row == pytest.approx(expected, rel=1e-6)
