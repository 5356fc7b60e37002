"""`.keras` files of revision 1fc4263 load with equal outputs.

`freeze_keras_files.py` wrote them. The last bits of outputs depend on the processor.
"""

import keras
import numpy as np
import pytest

import t2t_repro
from tests.keras_person.freeze_keras_files import IDS, MODELS, TARGETS
from tests.run_command import ROOT

FILES = ROOT / "tests" / "data" / "keras_files"
# Keras triggers this NumPy 2 warning when it saves TensorFlow's variables.
pytestmark = pytest.mark.filterwarnings(
    "ignore:__array__ implementation doesn't accept a copy:DeprecationWarning"
)


def load(name, folder=FILES):
    assert t2t_repro.Transformer  # Importing the class registers it.
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


@pytest.mark.medium
@pytest.mark.parametrize("name", ["classes", "stacks", *MODELS])
def test_former_files_load_with_equal_outputs_and_can_be_saved_again(name, tmp_path):
    model = load(name)
    assert_computes(name, model)
    model.save(tmp_path / f"{name}.keras")
    assert_computes(name, load(name, tmp_path))


def test_all_former_files_are_tested():
    names = {path.stem for path in FILES.glob("*.keras")}
    assert names == {"classes", "stacks", *MODELS}


def test_rejects_a_variant_class_without_a_corresponding_option():
    variant = {"feed_forward": {"class_name": "keras_person>Louder", "config": {}}}
    sizes = {"num_heads": 2, "d_k": 2, "d_v": 2, "d_ff": 4}
    config = {
        "class_name": "EncoderLayer",
        "registered_name": "t2t_repro>EncoderLayer",
        "config": sizes | {"variant": variant},
    }
    with pytest.raises(
        ValueError, match=r"'feed_forward': no current option corresponds to .*Louder"
    ):
        keras.saving.deserialize_keras_object(config)
