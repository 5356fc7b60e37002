"""Tests of `export --input ids`, in TensorFlow without other operations.

They also test the flags of the search, which do not depend on the kind of input.
"""

import json
import re
import subprocess
import sys

import pytest
from serving_harness.running import serve

from t2t_repro.serving.server.batching import BatchingParameters
from tests import run_command, tiny
from tests.docs.blocks import blocks

pytestmark = pytest.mark.medium

LINES = [source for source, _ in tiny.pairs("test")] + [""]
TEXT = "".join(f"{line}\n" for line in LINES).encode()
SEARCH = ("--checkpoint", "latest", "--beam_size", "1")
PROGRAM = """
import sys
folder = sys.argv[1]
sys.path.insert(0, f"{folder}/assets.extra/tokenizer")
import plain_tokenizer
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.python.framework import op_def_registry

with open(f"{folder}/saved_model.pb", "rb") as file:
    (meta,) = saved_model_pb2.SavedModel.FromString(file.read()).meta_graphs
functions = [each.node_def for each in meta.graph_def.library.function]
names = {node.op for nodes in (meta.graph_def.node, *functions) for node in nodes}
names -= {each.signature.name for each in meta.graph_def.library.function}
assert len(names) > 50
unknown = [name for name in names if op_def_registry.get(name) is None]
assert not unknown, unknown
tokenizer = plain_tokenizer.load(f"{folder}/assets.extra/tokenizer")
rows = [tokenizer.encode(line.rstrip("\\n")) for line in sys.stdin]
with tf.compat.v1.Session(graph=tf.Graph()) as session:
    signatures = tf.compat.v1.saved_model.load(session, ["serve"], folder).signature_def
    signature = signatures["serving_default"]
    outputs = session.run(
        signature.outputs["outputs"].name,
        {signature.inputs["inputs"].name: plain_tokenizer.pad(rows)},
    )
for row in outputs:
    print(tokenizer.decode(row))
assert not {"tensorflow_text", "t2t_repro"} & set(sys.modules)
"""


@pytest.fixture(scope="module")
def exported(trained, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ids") / "exported"
    flags = ("--model_dir", str(trained.model_dir), "--export_dir", str(folder))
    flags += (*SEARCH, "--max_input_length", "20", "--model_name", "other")
    completed = run_command.run("export", *flags, "--input", "ids", "--json")
    assert completed.status == 0, completed.err
    assert json.loads(completed.out)["saved_model"] == str(folder / "1")
    return folder


@pytest.fixture(scope="module")
def expected(trained):
    flags = ("--model_dir", str(trained.model_dir), *SEARCH)
    return run_command.run("translate", *flags, stdin=TEXT).out


def test_the_example_of_the_page_and_a_process_without_tensorflow_text_translate(
    exported, expected, tmp_path
):
    (example,) = (b for b in blocks("python") if "exported_ids" in b.text)
    (tmp_path / "exported_ids").symlink_to(exported)
    process = subprocess.run(
        [sys.executable, "-P", "-c", example.text + PROGRAM, str(exported / "1")],
        input=TEXT.decode(),
        capture_output=True,
        encoding="utf-8",
        cwd=tmp_path,
        env={"TF_CPP_MIN_LOG_LEVEL": "3"},
        check=False,
    )
    assert process.returncode == 0, process.stderr
    lines = process.stdout.splitlines(keepends=True)
    assert "".join(lines[2:]) == expected


def test_flags_change_the_search_and_the_card(exported):
    card = (exported / "1/assets.extra/README.md").read_text(encoding="utf-8")
    assert "take and return ids of the vocabulary" in card
    assert "beam_size: 1\n" in card
    assert "Beam size 1, alpha 0.6. Lines are cut to the first 20 subwords" in card
    assert "These weights were not scored after training." in card
    assert "`step-00000004`" in card
    assert "The licence of the weights is not stated" in card
    config = (exported / "models.config").read_text()
    assert 'name: "other"' in config


def test_the_client_encodes_and_decodes_and_the_server_cuts(exported, expected):
    tokenizer = ("--tokenizer", str(exported / "1/assets.extra/tokenizer"))
    # The last lines have the same first 20 subwords.
    long = [f"{'one ' * 20}{word}\n" for word in ("two", "three four")]
    text = TEXT + "".join(long).encode()
    with serve(
        exported, "other", BatchingParameters.read(exported / "batching_parameters.txt")
    ) as running:
        for protocol in ("grpc", "rest"):
            port = running.grpc_port if protocol == "grpc" else running.rest_port
            flags = ("--host", "127.0.0.1", "--port", str(port), "--model", "other")
            flags += ("--protocol", protocol)
            sizes = ("--batch_size", "2")
            completed = run_command.run(
                "client", *flags, *tokenizer, *sizes, stdin=text
            )
            assert completed.status == 0, completed.err
            assert completed.out.startswith(expected)
            reports = [line.rpartition(": ")[0] for line in completed.err.splitlines()]
            assert reports == [
                f"line {len(LINES) + n}: subwords that were not read" for n in (1, 2)
            ]
            first, second = completed.out.removeprefix(expected).splitlines()
            assert first == second
            completed = run_command.run("client", *flags, stdin=TEXT)
            assert run_command.is_one_clear_line(completed)
            assert "the model takes ids: give its folder" in completed.err


def test_a_folder_has_exports_of_one_kind_of_input(trained, exported):
    flags = ("--model_dir", str(trained.model_dir), "--export_dir", str(exported))
    completed = run_command.run("export", *flags)
    assert run_command.is_one_clear_line(completed)
    assert re.search(
        "/1 takes ids, so clients of --input text would fail", completed.err
    )


def test_an_export_of_ids_can_be_imported(exported, expected, tmp_path):
    flags = ("--checkpoint", str(exported / "1"), "--model_dir", str(tmp_path / "m"))
    completed = run_command.run("import_opennmt", *flags)
    assert completed.status == 0, completed.err
    flags = ("--model_dir", str(tmp_path / "m"))
    assert run_command.run("translate", *flags, stdin=TEXT).out == expected


def test_other_commands_need_a_model_directory(exported):
    flags = ("--model_dir", str(exported / "1"))
    completed = run_command.run("translate", *flags, stdin=TEXT)
    assert run_command.is_one_clear_line(completed)
    assert "is an exported SavedModel; give the directory" in completed.err
