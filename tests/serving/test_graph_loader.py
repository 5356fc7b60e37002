"""The export requires only TensorFlow and the operations of tensorflow_text.

It runs in a Python process without this project and in TensorFlow's C runtime. The
signature `serving_default` of two exports runs only in the C program.
"""

import importlib.util
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from tests import fork_server
from tests.serving import small

SCRIPT = Path(__file__).parents[2] / "tools" / "benchmarks" / "peers" / "run_export.py"
C_SOURCE = Path(__file__).with_name("run_model.c")
LINES = small.sentences(8)
TEXTS = [*LINES, "", ">>deu<< one two", "One. Two.\r\nthree"]
# An export with 7-bit weights also runs on processors without VNNI.
AVX2 = {"ONEDNN_MAX_CPU_ISA": "AVX2"}


def answers(version, signatures, cwd, environment):
    """Calls signatures in a process that cannot import this project."""
    process = subprocess.run(
        [fork_server.python(), SCRIPT, version],
        input="".join(
            json.dumps({"signature": name, "inputs": dict.fromkeys(inputs, TEXTS)})
            + "\n"
            for name, inputs in signatures.items()
        ),
        capture_output=True,
        encoding="utf-8",
        cwd=cwd,
        env={"TF_CPP_MIN_LOG_LEVEL": "3", "PATH": "", **environment},
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return [json.loads(line) for line in process.stdout.splitlines()]


TEXT, PAIR = ["text"], ["text", "translation"]


@pytest.mark.medium
@pytest.mark.parametrize(
    ("kind", "signatures"),
    [
        (
            "",
            {
                "serving_default": TEXT,
                "split_sentences": TEXT,
                "nbest": TEXT,
                "score": PAIR,
                "attention": PAIR,
            },
        ),
        ("marian_", {"split_sentences": TEXT, "score": PAIR, "attention": PAIR}),
        ("int8_", {"score": PAIR, "attention": PAIR}),
    ],
)
def test_a_copied_export_runs_without_the_package(kind, signatures, request, tmp_path):
    export_dir = request.getfixturevalue(f"{kind}export_dir")
    module = request.getfixturevalue(f"{kind}module")
    copy = shutil.copytree(export_dir / "1", tmp_path / "elsewhere")
    environment = AVX2 if kind == "int8_" else {}
    results = answers(copy, signatures, tmp_path, environment)
    for (name, inputs), answer in zip(signatures.items(), results, strict=True):
        assert answer["loaded"] == []
        outputs = module.functions[name](*[tf.constant(TEXTS)] * len(inputs))
        for output, expected in outputs.items():
            values = answer["outputs"][output]
            expected = expected.numpy().ravel()
            if expected.dtype == object:
                assert values == [text.decode() for text in expected]
            else:
                np.testing.assert_allclose(values, expected, atol=1e-4)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("gcc is not installed")
    folder = Path(tf.sysconfig.get_lib())
    output = tmp_path_factory.mktemp("c") / "run_model"
    # It links with the large libraries several times as fast as the default linker.
    fast_linker = ["-fuse-ld=gold"] if shutil.which("ld.gold") else []
    subprocess.run(
        [
            compiler,
            *("-O1", "-Wall", "-Werror"),
            *fast_linker,
            f"-I{tf.sysconfig.get_include()}",
            C_SOURCE,
            *("-o", output),
            *(f"-L{folder}", f"-Wl,-rpath,{folder}"),
            *("-l:libtensorflow_cc.so.2", "-l:libtensorflow_framework.so.2"),
        ],
        check=True,
    )
    return output


@pytest.mark.medium
@pytest.mark.parametrize("kind", ["marian_", "int8_"])
def test_a_c_program_translates_like_python(program, kind, request):
    export_dir = request.getfixturevalue(f"{kind}export_dir")
    module = request.getfixturevalue(f"{kind}module")
    libraries = Path(importlib.util.find_spec("tensorflow_text").origin).parent
    contents = (export_dir / "1" / "saved_model.pb").read_bytes()
    (meta,) = saved_model_pb2.SavedModel.FromString(contents).meta_graphs
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
        input="".join(f"{text}\n" for text in LINES),
        capture_output=True,
        encoding="utf-8",
        env={"TF_CPP_MIN_LOG_LEVEL": "3", **(AVX2 if kind == "int8_" else {})},
        check=False,
    )
    assert process.returncode == 0, process.stderr
    scores, texts = zip(
        *(line.split("\t", 1) for line in process.stdout.split("\n")[:-1]), strict=True
    )
    expected = module.functions["serving_default"](tf.constant(LINES))
    assert list(texts) == [t.decode() for t in expected["translations"].numpy()]
    np.testing.assert_allclose(np.float32(scores), expected["scores"], atol=1e-4)
