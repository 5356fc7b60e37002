"""Every backend of Keras computes with layers and model what TensorFlow computes."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

from tests.keras_person.another_backend import computed

ROOT = Path(__file__).resolve().parents[2]
# Keras reads PyTorch's arrays in a way that is new in NumPy 2.
KNOWN = "ignore:__array__ implementation doesn't accept a copy:DeprecationWarning"


@pytest.fixture(scope="module")
def on_tensorflow(tmp_path_factory):
    """The file of all weights, and each output by its case."""
    weights, outputs = {}, {}
    for name, layer, output in computed():
        outputs[name] = keras.ops.convert_to_numpy(output)
        weights |= {f"{name}:{v.path}": v.numpy() for v in layer.weights}
    path = tmp_path_factory.mktemp("backends") / "weights.npz"
    np.savez(path, **weights)
    return path, outputs


@pytest.mark.medium
@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_another_backend_computes_the_same_and_learns(backend, on_tensorflow):
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    weights, expected = on_tensorflow
    outputs = weights.with_name(f"{backend}.npz")
    command = ["-m", "tests.keras_person.another_backend", str(weights), str(outputs)]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-W", KNOWN, *command],
        cwd=ROOT,
        env=os.environ | {"KERAS_BACKEND": backend, "CUDA_VISIBLE_DEVICES": "-1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip() == backend
    with np.load(outputs) as found:
        assert set(found) == set(expected)
        for name, output in expected.items():
            np.testing.assert_allclose(found[name], output, atol=1e-5, err_msg=name)
