"""Importing the package makes TensorFlow use oneDNN on any x86-64 processor."""

import os
import platform
import subprocess
import sys

import pytest

OPTION = "TF_ENABLE_ONEDNN_OPTS"
pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the option is for x86-64"
)


def run(program, variables):
    unset = {OPTION, "TF_CPP_MIN_LOG_LEVEL"}
    environment = {k: v for k, v in os.environ.items() if k not in unset}
    return subprocess.run(
        [sys.executable, "-c", program],
        env=environment | variables,
        capture_output=True,
        text=True,
        check=True,
    )


@pytest.mark.parametrize(("variables", "value"), [({}, "1"), ({OPTION: "0"}, "0")])
def test_the_import_sets_the_option_unless_it_is_set(variables, value):
    program = f"import os, t2t_repro; print(os.environ['{OPTION}'])"
    assert run(program, variables).stdout == f"{value}\n"


def test_tensorflow_uses_onednn():
    """The tests import the package before TensorFlow."""
    from tensorflow.python.util import _pywrap_util_port

    assert _pywrap_util_port.IsMklEnabled() is (os.environ[OPTION] == "1")
