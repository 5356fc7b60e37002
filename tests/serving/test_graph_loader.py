"""The export requires only TensorFlow and the operations of tensorflow_text."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.serving import small

SCRIPT = Path(__file__).parents[2] / "tools" / "benchmarks" / "peers" / "run_export.py"
TEXTS = [*small.sentences(8), "", ">>deu<< one two"]


def answers(python, version, cwd):
    """Calls every signature in a process that cannot import this project."""
    requests = [
        {"signature": name, "inputs": {"text": TEXTS}}
        for name in ("serving_default", "nbest")
    ]
    requests += [
        {"signature": name, "inputs": {"text": TEXTS, "translation": TEXTS}}
        for name in ("score", "attention")
    ]
    process = subprocess.run(
        [python, SCRIPT, version],
        input="".join(f"{json.dumps(request)}\n" for request in requests),
        capture_output=True,
        encoding="utf-8",
        cwd=cwd,
        env={"TF_CPP_MIN_LOG_LEVEL": "3", "PATH": ""},
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return [json.loads(line) for line in process.stdout.splitlines()]


def assert_answers(results, module):
    names = ("serving_default", "nbest", "score", "attention")
    for name, answer in zip(names, results, strict=True):
        assert answer["loaded"] == []
        function = module.functions[name]
        inputs = [tf.constant(TEXTS)] * len(function.input_signature)
        for output, expected in function(*inputs).items():
            values = answer["outputs"][output]
            expected = expected.numpy().ravel()
            if expected.dtype == object:
                assert values == [text.decode() for text in expected]
            else:
                np.testing.assert_allclose(values, expected, atol=1e-4)


@pytest.mark.medium
@pytest.mark.parametrize("kind", ["", "marian_", "int8_"])
def test_a_copied_export_runs_without_the_package(kind, request, tmp_path):
    export_dir = request.getfixturevalue(f"{kind}export_dir")
    module = request.getfixturevalue(f"{kind}module")
    copy = shutil.copytree(export_dir / "1", tmp_path / "elsewhere")
    assert_answers(answers(sys.executable, copy, tmp_path), module)
