"""The export requires only TensorFlow and the operations of tensorflow_text.

It runs in a Python process without this project and in TensorFlow's C runtime; each
signature runs in one of the two.
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

from t2t_repro.serving.saved_model import write_saved_model
from tests import forks
from tests.serving import small

SCRIPT = Path(__file__).parents[2] / "tools" / "benchmarks" / "peers" / "run_export.py"
C_SOURCE = Path(__file__).with_name("run_model.c")
LINES = small.sentences(8)
TEXTS = [*LINES, "", ">>deu<< one two", "One. Two.\r\nthree"]
# An export with 7-bit weights also runs on processors without VNNI.
AVX2 = {"ONEDNN_MAX_CPU_ISA": "AVX2"}
PAIR = ["text", "translation"]
SIGNATURES = {"nbest": ["text"], "score": PAIR, "attention": PAIR}


def assert_runs_without_the_package(module, version, signatures, folder, **variables):
    """Calls signatures in a process that cannot import this project."""
    copy = shutil.copytree(version, folder / "elsewhere")
    process = subprocess.run(
        [forks.python(), SCRIPT, copy],
        input="".join(
            json.dumps({"signature": name, "inputs": dict.fromkeys(inputs, TEXTS)})
            + "\n"
            for name, inputs in signatures.items()
        ),
        capture_output=True,
        encoding="utf-8",
        cwd=folder,
        env={"TF_CPP_MIN_LOG_LEVEL": "3", "PATH": "", **variables},
        check=False,
    )
    assert process.returncode == 0, process.stderr
    results = [json.loads(line) for line in process.stdout.splitlines()]
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


def export_only(names, module, folder, monkeypatch):
    """Exports some signatures, because each takes seconds; returns the version."""
    functions = {name: module.functions[name] for name in names}
    monkeypatch.setattr(module, "functions", functions)
    write_saved_model(module, folder / "1")
    return folder / "1"


@pytest.mark.medium
def test_a_copied_export_runs_without_the_package(export_dir, module, tmp_path):
    assert_runs_without_the_package(module, export_dir / "1", SIGNATURES, tmp_path)


@pytest.mark.medium
def test_a_copied_int8_export_runs_without_the_package(
    int8_module, tmp_path, monkeypatch
):
    pairs = {"score": PAIR, "attention": PAIR}
    version = export_only(pairs, int8_module, tmp_path / "exported", monkeypatch)
    assert_runs_without_the_package(int8_module, version, pairs, tmp_path, **AVX2)


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
@pytest.mark.parametrize(
    ("kind", "name"), [("marian", "split_sentences"), ("int8", "serving_default")]
)
def test_a_c_program_translates_like_python(
    program, kind, name, request, tmp_path, monkeypatch
):
    module = request.getfixturevalue(f"{kind}_module")
    version = export_only([name], module, tmp_path, monkeypatch)
    lines = [*LINES, ">>deu<< One. Two."]
    libraries = Path(importlib.util.find_spec("tensorflow_text").origin).parent
    contents = (version / "saved_model.pb").read_bytes()
    (meta,) = saved_model_pb2.SavedModel.FromString(contents).meta_graphs
    signature = meta.signature_def[name]
    process = subprocess.run(
        [
            program,
            version,
            signature.inputs["text"].name,
            signature.outputs["translations"].name,
            signature.outputs["scores"].name,
            *sorted(libraries.glob("python/ops/*.so")),
        ],
        input="".join(f"{text}\n" for text in lines),
        capture_output=True,
        encoding="utf-8",
        env={"TF_CPP_MIN_LOG_LEVEL": "3", **(AVX2 if kind == "int8" else {})},
        check=False,
    )
    assert process.returncode == 0, process.stderr
    scores, texts = zip(
        *(line.split("\t", 1) for line in process.stdout.split("\n")[:-1]), strict=True
    )
    expected = module.functions[name](tf.constant(lines))
    assert list(texts) == [t.decode() for t in expected["translations"].numpy()]
    np.testing.assert_allclose(np.float32(scores), expected["scores"], atol=1e-4)
