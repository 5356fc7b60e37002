"""The detection of instruction sets follows oneDNN's environment variable."""

import pytest
import tensorflow as tf
from tensorflow.python.util import _pywrap_utils

from t2t_repro.system.processor import uses_avx512


@pytest.mark.skipif(
    not _pywrap_utils.IsDataTypeSupportedByOneDNNOnThisCPU(tf.bfloat16),
    reason="the processor has no AVX-512",
)
@pytest.mark.parametrize(
    ("limit", "expected"),
    [("AVX2", False), ("avx2_vnni", False), ("AVX512_CORE", True), ("ALL", True)],
)
def test_the_limit_decides_whether_avx512_is_used(limit, expected, monkeypatch):
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", limit)
    assert uses_avx512() is expected
