"""The export runs in TensorFlow's C runtime, without Python."""

import importlib.util
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.serving import small

SOURCE = Path(__file__).with_name("run_model.c")
TEXTS = small.sentences(8)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("gcc is not installed")
    folder = Path(tf.sysconfig.get_lib())
    output = tmp_path_factory.mktemp("c") / "run_model"
    subprocess.run(
        [
            compiler,
            *("-O1", "-Wall", "-Werror"),
            f"-I{tf.sysconfig.get_include()}",
            SOURCE,
            *("-o", output),
            *(f"-L{folder}", f"-Wl,-rpath,{folder}"),
            *("-l:libtensorflow_cc.so.2", "-l:libtensorflow_framework.so.2"),
        ],
        check=True,
    )
    return output


@pytest.mark.medium
@pytest.mark.parametrize("kind", ["", "marian_", "int8_"])
def test_a_c_program_translates_like_python(program, kind, request):
    export_dir = request.getfixturevalue(f"{kind}export_dir")
    module = request.getfixturevalue(f"{kind}module")
    libraries = Path(importlib.util.find_spec("tensorflow_text").origin).parent
    graph = tf.Graph()
    with tf.compat.v1.Session(graph=graph) as session:
        meta = tf.compat.v1.saved_model.load(session, ["serve"], str(export_dir / "1"))
    signature = meta.signature_def["serving_default"]
    process = subprocess.run(
        [
            program,
            export_dir / "1",
            signature.inputs["text"].name,
            signature.outputs["translations"].name,
            signature.outputs["scores"].name,
            *sorted(libraries.glob("python/ops/*.so")),
        ],
        input="".join(f"{text}\n" for text in TEXTS),
        capture_output=True,
        encoding="utf-8",
        env={"TF_CPP_MIN_LOG_LEVEL": "3"},
        check=False,
    )
    assert process.returncode == 0, process.stderr
    scores, texts = zip(
        *(line.split("\t", 1) for line in process.stdout.split("\n")[:-1]), strict=True
    )
    expected = module.functions["serving_default"](tf.constant(TEXTS))
    assert list(texts) == [t.decode() for t in expected["translations"].numpy()]
    np.testing.assert_allclose(np.float32(scores), expected["scores"], atol=1e-4)
