"""Precisions in which TensorFlow would crash are rejected."""

import os
import subprocess
import sys

import pytest
import tensorflow as tf
from tensorflow.python.util import _pywrap_utils

from t2t_repro.models.precision import mixed_precision
from t2t_repro.system.errors import UserError

AVX2 = {"ONEDNN_MAX_CPU_ISA": "AVX2"}
MATMUL = """
import sys
from t2t_repro.models.precision import why_not
print(why_not(sys.argv[1]), flush=True)
import tensorflow as tf
x = tf.ones([2, 2], sys.argv[1])
assert tf.function(tf.matmul)(x, x)[0, 0] == 2
"""


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
def test_a_matmul_crashes_exactly_where_there_is_a_reason(name, settings):
    done = subprocess.run(
        [sys.executable, "-c", MATMUL, name],
        env=os.environ | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    reason = done.stdout.strip()
    assert (done.returncode == 0) is (reason == "None"), (reason, done.stderr)


@pytest.mark.skipif(
    not _pywrap_utils.IsDataTypeSupportedByOneDNNOnThisCPU(tf.bfloat16)
    or bool(tf.config.list_physical_devices("GPU")),
    reason="oneDNN does not compute bfloat16 matmuls on this machine",
)
def test_the_error_names_the_setting_and_the_remedies(monkeypatch):
    monkeypatch.delenv("TF_ENABLE_ONEDNN_OPTS", raising=False)
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    remedies = "ONEDNN_MAX_CPU_ISA=AVX2: unset it, .* or set TF_ENABLE_ONEDNN_OPTS=0"
    with pytest.raises(UserError, match=remedies), mixed_precision("bfloat16"):
        pass
