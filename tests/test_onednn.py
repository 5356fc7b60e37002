"""Importing the package makes TensorFlow use oneDNN, whatever the processor."""

import os
import platform
import subprocess
import sys

import pytest

OPTION = "TF_ENABLE_ONEDNN_OPTS"


@pytest.mark.medium
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the option is for x86-64")
@pytest.mark.parametrize(("given", "on"), [({}, True), ({OPTION: "0"}, False)])
def test_tensorflow_takes_onednn_unless_it_is_told_not_to(given, on):
    unset = {OPTION, "TF_CPP_MIN_LOG_LEVEL"}
    environment = {k: v for k, v in os.environ.items() if k not in unset}
    done = subprocess.run(
        [sys.executable, "-c", "import t2t_repro, tensorflow"],
        env=environment | given,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ("oneDNN custom operations are on" in done.stderr) is on
