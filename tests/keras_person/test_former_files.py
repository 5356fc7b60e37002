"""`.keras` files of revision 1fc4263 are read, with the outputs that it computed.

`freeze_keras_files.py` wrote them there. The last bits depend on the processor.
"""

import keras
import numpy as np
import pytest

import t2t_repro
from tests.keras_person.freeze_keras_files import IDS, MODELS, TARGETS
from tests.run_command import ROOT

FILES = ROOT / "tests" / "data" / "keras_files"
# Keras' saving reads TensorFlow's variables in a way that is new in NumPy 2.
pytestmark = pytest.mark.filterwarnings(
    "ignore:__array__ implementation doesn't accept a copy:DeprecationWarning"
)


def load(name, folder=FILES):
    assert t2t_repro.Transformer  # Whoever names it makes it known to Keras.
    return keras.saving.load_model(folder / f"{name}.keras")


def assert_computes(name, model):
    inputs = {"inputs": IDS, "targets": TARGETS} if name in MODELS else IDS
    outputs = keras.tree.flatten(model(inputs))
    with np.load(FILES / "outputs.npz") as arrays:
        expected = [arrays[f"{name}-{number}"] for number in range(len(outputs))]
    for one, other in zip(outputs, expected, strict=True):
        assert one.dtype == "float32"
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
    assert sum(key.startswith(name) for key in arrays.files) == len(expected)


@pytest.mark.parametrize("name", ["classes", "stacks", *MODELS])
def test_a_former_file_is_read_and_computes_what_it_did(name, tmp_path):
    model = load(name)
    assert_computes(name, model)
    model.save(tmp_path / f"{name}.keras")
    assert_computes(name, load(name, tmp_path))


def test_every_former_file_is_read():
    names = {path.stem for path in FILES.glob("*.keras")}
    assert names == {"classes", "stacks", *MODELS}
