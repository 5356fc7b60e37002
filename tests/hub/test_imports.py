"""Only `t2t_repro.hub` imports keras-hub."""

import importlib
import subprocess
import sys

import pytest

from t2t_repro.system.errors import UserError

PROGRAM = """
import sys
import t2t_repro
import t2t_repro.evaluate, t2t_repro.export, t2t_repro.train, t2t_repro.translate
t2t_repro.load, t2t_repro.Transformer
t2t_repro.export._parser()
print(sorted({"keras_hub", "keras_nlp", "t2t_repro.hub"} & sys.modules.keys()))
"""


def test_load_and_the_commands_do_not_import_keras_hub(forked_python):
    command = [sys.executable, "-c", PROGRAM]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    assert process.stdout == "[]\n"


def test_a_missing_keras_hub_is_reported(monkeypatch):
    monkeypatch.setitem(sys.modules, "keras_hub", None)
    monkeypatch.delitem(sys.modules, "t2t_repro.hub", raising=False)
    with pytest.raises(
        UserError, match=r"^t2t_repro\.hub needs keras-hub.* pip install"
    ):
        importlib.import_module("t2t_repro.hub")
