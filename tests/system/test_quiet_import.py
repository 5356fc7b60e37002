"""Tests of the choice of the backend of Keras."""

import os
import sys
from types import SimpleNamespace

import pytest

from t2t_repro.system.errors import UserError
from t2t_repro.system.quiet_import import use_tensorflow_backend


def keras_with(backend):
    return SimpleNamespace(config=SimpleNamespace(backend=lambda: backend))


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", "1")
    monkeypatch.setitem(sys.modules, "tf_keras", None)


def test_chooses_tensorflow_if_keras_is_not_imported(monkeypatch):
    monkeypatch.delitem(sys.modules, "keras", raising=False)
    use_tensorflow_backend()
    assert os.environ["KERAS_BACKEND"] == "tensorflow"


def test_an_imported_keras_must_use_tensorflow(monkeypatch):
    monkeypatch.setitem(sys.modules, "keras", keras_with("torch"))
    with pytest.raises(
        UserError, match=r"with the backend torch, .* set KERAS_BACKEND"
    ):
        use_tensorflow_backend()
    monkeypatch.setitem(sys.modules, "keras", keras_with("tensorflow"))
    use_tensorflow_backend()
    assert os.environ["KERAS_BACKEND"] == "jax"
    assert "TF_USE_LEGACY_KERAS" not in os.environ
