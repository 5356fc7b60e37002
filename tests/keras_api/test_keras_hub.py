"""KerasHub's own models work next to the package, whichever is imported first."""

import runpy
import subprocess
import sys
from pathlib import Path

import keras
import pytest

from t2t_repro import fast, layers

SCRIPT = Path(__file__).parent / "bart.py"


def test_registered_classes_are_hashable():
    # KerasHub reads Keras' registry backwards, with the classes as keys.
    registry = keras.saving.get_custom_objects()
    names = {item: name for name, item in registry.items()}
    assert names[layers.EncoderLayer] == "t2t_repro>EncoderLayer"


def test_presets_of_bart_work_after_the_layers_and_install(tmp_path):
    save_and_load = runpy.run_path(str(SCRIPT))["save_and_load"]
    save_and_load(tmp_path / "first")
    fast.install()
    save_and_load(tmp_path / "second")


@pytest.mark.medium
def test_presets_of_bart_work_if_kerashub_is_imported_first(trained, tmp_path):
    command = [sys.executable, str(SCRIPT), str(trained.model_dir), str(tmp_path)]
    subprocess.run(command, check=True)
