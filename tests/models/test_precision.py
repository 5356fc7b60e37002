"""Precisions in which TensorFlow would crash are rejected."""

import os
import subprocess
import sys

import pytest
import tensorflow as tf
from tensorflow.python.util import _pywrap_utils

from t2t_repro.models.precision import mixed_precision
from t2t_repro.system.errors import UserError
from tests import run_command, tiny

AVX2 = {"ONEDNN_MAX_CPU_ISA": "AVX2"}
MATMUL = """
import sys
from t2t_repro.models.precision import unsupported_reason
print(unsupported_reason(sys.argv[1]), flush=True)
import tensorflow as tf
x = tf.ones([2, 2], sys.argv[1])
assert tf.function(tf.matmul)(x, x)[0, 0] == 2
"""
CRASHES = pytest.mark.skipif(
    not _pywrap_utils.IsDataTypeSupportedByOneDNNOnThisCPU(tf.bfloat16)
    or bool(tf.config.list_physical_devices("GPU")),
    reason="oneDNN does not compute bfloat16 matmuls on this machine",
)


@pytest.mark.medium
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("float32", AVX2),
        ("float16", AVX2),
        ("bfloat16", AVX2),
        ("bfloat16", AVX2 | {"TF_ENABLE_ONEDNN_OPTS": "0"}),
        ("bfloat16", {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE"}),
    ],
)
def test_a_matmul_crashes_exactly_if_there_is_a_reason(name, settings):
    process = subprocess.run(
        [sys.executable, "-c", MATMUL, name],
        env=os.environ | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    reason = process.stdout.strip()
    assert reason, process.stderr
    assert (process.returncode == 0) is (reason == "None"), (reason, process.stderr)


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
