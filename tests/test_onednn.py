"""Importing the package makes TensorFlow use oneDNN on any x86-64 processor."""

import os
import platform
import subprocess
import sys

import pytest

OPTION = "TF_ENABLE_ONEDNN_OPTS"


@pytest.mark.medium
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the option is for x86-64")
@pytest.mark.parametrize(("variables", "on"), [({}, True), ({OPTION: "0"}, False)])
def test_tensorflow_uses_onednn_unless_disabled(variables, on):
    unset = {OPTION, "TF_CPP_MIN_LOG_LEVEL"}
    environment = {k: v for k, v in os.environ.items() if k not in unset}
    result = subprocess.run(
        [sys.executable, "-c", "import t2t_repro, tensorflow"],
        env=environment | variables,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ("oneDNN custom operations are on" in result.stderr) is on
