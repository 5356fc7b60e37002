"""Tests of the model from which a training starts."""

import pytest

from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.system.errors import UserError
from t2t_repro.training.origin import choose_start
from tests.runs.directories import HPARAMS, provenance

RECORD = {"path": "origin", "weights": "averaged", "fingerprint": "0" * 64}


@pytest.mark.parametrize(
    ("recorded", "given", "message"),
    [
        ({}, None, "contains no checkpoint yet; give --init_from origin again"),
        ({"guard": "A"}, "A", "contains no checkpoint yet"),
        ({}, "A", "--guard: the training in .* has no guard; give the same --guard"),
        ({"guard": "A"}, None, "has another guard set; give the same --guard"),
        ({"guard": "A"}, "B", "has another guard set; give the same --guard"),
    ],
)
def test_a_training_keeps_its_guard(tmp_path, tokenizer, recorded, given, message):
    directory = ModelDir(tmp_path / "model")
    record = provenance(tokenizer, origin=RECORD | recorded)
    directory.begin(HPARAMS, record, tokenizer)
    with pytest.raises(UserError, match=message):
        choose_start({}, None, directory, None, print, guard=given)
