"""Tests of models that the live page does not support, and of packed weights."""

import numpy as np
import pytest

from t2t_repro.hparams import HParams
from t2t_repro.live_page import model_data
from t2t_repro.models.variables import named_variables
from t2t_repro.system.errors import UserError
from tests import tiny


def test_rejects_unsupported_options():
    with pytest.raises(UserError, match="search=opennmt: the live page supports"):
        model_data.live_config(HParams(search="opennmt"))


def test_rejects_models_that_are_too_large_or_not_finite(monkeypatch):
    model = tiny.random_model()
    monkeypatch.setattr(model_data, "MOST_PARAMETERS", 100)
    with pytest.raises(UserError, match="live page supports at most 100"):
        model_data.pack_weights(model)
    monkeypatch.undo()
    model.embedding.table.assign(model.embedding.table * np.inf)
    with pytest.raises(UserError, match="embedding/table contains weights that are"):
        model_data.pack_weights(model)


def test_weights_of_a_small_model_are_exact():
    model = tiny.random_model()
    _, contents = model_data.pack_weights(model)
    values = [variable.numpy() for variable in named_variables(model).values()]
    expected = np.concatenate([value.reshape(-1) for value in values])
    np.testing.assert_array_equal(np.frombuffer(contents, "<f4"), expected)


def test_weights_are_rounded_to_sixteen_significant_bits(monkeypatch):
    monkeypatch.setattr(model_data, "MOST_EXACT_PARAMETERS", 0)
    model = tiny.random_model()
    index, contents = model_data.pack_weights(model)
    values = [variable.numpy() for variable in named_variables(model).values()]
    assert [shape for _, shape in index] == [list(value.shape) for value in values]
    exact = np.concatenate([value.reshape(-1) for value in values])
    fraction, exponent = np.frexp(exact.astype(np.float64))
    expected = np.ldexp(np.rint(fraction * 2**16), exponent - 16)
    assert np.any(expected != exact)
    bytes_ = np.frombuffer(contents, np.uint8).reshape(-1, 3)
    unpacked = np.pad(bytes_, ((0, 0), (1, 0))).reshape(-1).view("<f4")
    np.testing.assert_array_equal(unpacked, expected)
