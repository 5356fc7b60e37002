"""All Keras backends compute the same with the layers and the model."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

from tests.keras_api.another_backend import computed

ROOT = Path(__file__).resolve().parents[2]
# Keras triggers this NumPy 2 warning when it reads PyTorch's arrays.
KNOWN = "ignore:__array__ implementation doesn't accept a copy:DeprecationWarning"


@pytest.fixture(scope="module")
def on_tensorflow(tmp_path_factory):
    """Returns the file of all weights, and the outputs by case."""
    weights, outputs = {}, {}
    for name, layer, output in computed():
        outputs[name] = keras.ops.convert_to_numpy(output)
        weights |= {f"{name}:{v.path}": v.numpy() for v in layer.weights}
    path = tmp_path_factory.mktemp("backends") / "weights.npz"
    np.savez(path, **weights)
    return path, outputs


@pytest.mark.medium
@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_other_backends_compute_the_same_and_learn(backend, on_tensorflow):
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    weights, expected = on_tensorflow
    outputs = weights.with_name(f"{backend}.npz")
    command = ["-m", "tests.keras_api.another_backend", str(weights), str(outputs)]
    process = subprocess.run(
        [sys.executable, "-W", "error", "-W", KNOWN, *command],
        cwd=ROOT,
        env=os.environ | {"KERAS_BACKEND": backend, "CUDA_VISIBLE_DEVICES": "-1"},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr[-3000:]
    assert process.stdout.strip() == backend
    with np.load(outputs) as actual:
        assert set(actual) == set(expected)
        for name, output in expected.items():
            np.testing.assert_allclose(actual[name], output, atol=1e-5, err_msg=name)
