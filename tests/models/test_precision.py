"""Precisions in which TensorFlow would crash are rejected."""

import os
import subprocess
import sys

import pytest
import tensorflow as tf
from tensorflow.python.util import _pywrap_utils

from t2t_repro.models.precision import mixed_precision, unsupported_reason
from t2t_repro.system.errors import UserError
from tests import forks, run_command, tiny

AVX2 = {"ONEDNN_MAX_CPU_ISA": "AVX2"}
CRASHES = pytest.mark.skipif(
    not _pywrap_utils.IsDataTypeSupportedByOneDNNOnThisCPU(tf.bfloat16)
    or bool(tf.config.list_physical_devices("GPU")),
    reason="oneDNN does not compute bfloat16 matmuls on this machine",
)


def multiply(name):
    """Prints the reason against a precision, then multiplies matrices in it."""
    print(unsupported_reason(name), flush=True)
    x = tf.ones([2, 2], name)
    assert tf.function(tf.matmul)(x, x)[0, 0] == 2


@pytest.mark.medium
def test_a_matmul_crashes_exactly_if_there_is_a_reason():
    settings = {"float32": AVX2, "float16": AVX2, "bfloat16": AVX2}
    calls = [(name,) for name in (*settings, "bfloat16")]
    isa = [*settings.values(), {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE"}]
    for result in forks.run(multiply, *calls, environments=isa):
        reason = result.out.strip()
        assert reason, result.err
        assert (result.status == 0) is (reason == "None"), (reason, result.err)


@pytest.mark.medium
def test_no_matmul_crashes_without_onednn():
    program = (
        "from tests.models.test_precision import multiply\n"
        "for name in ('float32', 'float16', 'bfloat16'): multiply(name)"
    )
    # TensorFlow reads TF_ENABLE_ONEDNN_OPTS when it is imported.
    variables = {"TF_ENABLE_ONEDNN_OPTS": "0", "PYTHONPATH": str(forks.ROOT)}
    result = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **AVX2, **variables},
        capture_output=True,
        text=True,
    )
    assert (result.returncode, result.stdout) == (0, "None\n" * 3), result.stderr


@CRASHES
def test_the_error_names_the_setting_and_remedies(monkeypatch):
    monkeypatch.delenv("TF_ENABLE_ONEDNN_OPTS", raising=False)
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    remedies = "ONEDNN_MAX_CPU_ISA=AVX2: unset it, .* or set TF_ENABLE_ONEDNN_OPTS=0"
    with pytest.raises(UserError, match=remedies), mixed_precision("bfloat16"):
        pass


@CRASHES
@pytest.mark.medium
def test_a_rejected_precision_leaves_no_model_directory(monkeypatch, tmp_path):
    tiny.write_corpus(tmp_path / "data")
    tiny.write_hparams(tmp_path)
    training = tiny.Trained(tmp_path, None)
    flags = (*training.arguments(), "--precision", "bfloat16")
    monkeypatch.delenv("TF_ENABLE_ONEDNN_OPTS", raising=False)
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    result = run_command.run("train", *flags)
    assert run_command.is_one_clear_line(result), result.err
    assert not training.model_dir.exists()
