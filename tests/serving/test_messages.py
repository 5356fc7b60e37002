"""The messages equal those of tensorflow-serving-api, which is not required."""

import subprocess

import pytest
import tensorflow as tf
from google.protobuf.descriptor import FieldDescriptor
from serving_harness.running import serve
from tensorflow_serving.apis import model_pb2, predict_pb2, prediction_log_pb2

from t2t_repro.serving import messages
from t2t_repro.serving.warmup import WARMUP_FILE
from tests import forks, run_command, tiny

THEIRS = {
    "ModelSpec": model_pb2.ModelSpec,
    "PredictRequest": predict_pb2.PredictRequest,
    "PredictResponse": predict_pb2.PredictResponse,
    "PredictLog": prediction_log_pb2.PredictLog,
    "PredictionLog": prediction_log_pb2.PredictionLog,
}
OURS = {name: getattr(messages, name) for name in THEIRS}

# Runs a command of the package in a process that cannot import tensorflow_serving.
BLOCKED = """
import importlib, sys
sys.modules["tensorflow_serving"] = None
from t2t_repro.command_line import cli
cli.run(importlib.import_module("t2t_repro." + sys.argv.pop(1)).main)
"""


def filled(classes, version):
    """Returns a PredictionLog with values in every field."""
    log = classes["PredictionLog"]()
    request, response = log.predict_log.request, log.predict_log.response
    for spec in (request.model_spec, response.model_spec):
        spec.name, spec.signature_name = "größe", "nbest"
        if version == "version":
            spec.version.value = 2**40
        else:
            spec.version_label = "stable"
    request.inputs["text"].CopyFrom(tf.make_tensor_proto(["a", "€"], tf.string))
    request.inputs["terms"].CopyFrom(tf.make_tensor_proto([["b"], [""]], tf.string))
    request.output_filter.extend(["scores", "translations"])
    response.outputs["scores"].CopyFrom(tf.make_tensor_proto([-0.5, 1e9], tf.float32))
    response.outputs["lengths"].CopyFrom(tf.make_tensor_proto([3], tf.int32))
    return log


@pytest.mark.parametrize("version", ["version", "version_label"])
def test_both_sets_of_classes_read_each_others_messages(version):
    ours, theirs = filled(OURS, version), filled(THEIRS, version)
    assert type(theirs).FromString(ours.SerializeToString()) == theirs
    assert type(ours).FromString(theirs.SerializeToString()) == ours


def unset(message):
    """Yields the full names of the fields that are not set in a message."""
    values = {field.name: value for field, value in message.ListFields()}
    for field in message.DESCRIPTOR.fields:
        if field.name not in values:
            yield f"{message.DESCRIPTOR.name}.{field.name}"
        elif field.type == FieldDescriptor.TYPE_MESSAGE and not hasattr(
            values[field.name], "keys"
        ):
            yield from unset(values[field.name])


@pytest.mark.parametrize(
    ("version", "other"), [("version", "version_label"), ("version_label", "version")]
)
def test_the_compared_messages_set_every_field(version, other):
    """Only one of `version` and `version_label` can be set."""
    assert set(unset(filled(OURS, version))) == {f"ModelSpec.{other}"}


def test_a_message_has_either_a_version_or_a_label():
    spec = messages.ModelSpec(version_label="stable")
    spec.version.value = 3
    assert spec.WhichOneof("version_choice") == "version"
    assert spec.version_label == ""


def test_unknown_fields_are_kept():
    theirs = predict_pb2.PredictRequest(client_id=b"somebody")
    theirs.model_spec.name = "m"
    ours = messages.PredictRequest.FromString(theirs.SerializeToString())
    assert type(theirs).FromString(ours.SerializeToString()) == theirs


@pytest.mark.medium
@pytest.mark.parametrize(
    "modules",
    [
        ("t2t_repro.serving.messages", "tensorflow_serving.apis.prediction_log_pb2"),
        ("tensorflow_serving.apis.prediction_log_pb2", "t2t_repro.serving.messages"),
    ],
)
def test_both_sets_of_classes_can_be_imported_in_either_order(modules):
    program = "".join(f"import {module}\n" for module in modules)
    program += (
        "log = t2t_repro.serving.messages.PredictionLog()\n"
        "log.predict_log.request.model_spec.name = 'both'\n"
        "theirs = tensorflow_serving.apis.prediction_log_pb2.PredictionLog\n"
        "print(theirs.FromString(log.SerializeToString()).predict_log.request)\n"
    )
    command = [forks.python(), "-c", program]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    assert process.stdout == 'model_spec {\n  name: "both"\n}\n\n'


def run_blocked(command, *arguments, text=""):
    program = [forks.python(), "-c", BLOCKED, command, *arguments]
    process = subprocess.run(
        program, cwd=run_command.ROOT, input=text, capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


@pytest.mark.medium
def test_export_and_client_work_without_tensorflow_serving_api(trained, tmp_path):
    home = ("--model_dir", str(trained.model_dir))
    run_blocked("export", *home, "--export_dir", str(tmp_path), "--model_name", "m")
    warmup = tmp_path / "1" / "assets.extra" / WARMUP_FILE
    logs = [
        prediction_log_pb2.PredictionLog.FromString(record.numpy())
        for record in tf.data.TFRecordDataset(str(warmup))
    ]
    assert {log.predict_log.request.model_spec.name for log in logs} == {"m"}
    text = "".join(f"{source}\n" for source, _ in tiny.pairs("test"))
    with serve(tmp_path, "m") as running:
        where = ("--host", "127.0.0.1", "--port", str(running.grpc_port))
        flags = (*where, "--model", "m", "--protocol", "grpc", "--version", "1")
        translations = run_blocked("client", *flags, text=text)
    expected = run_command.run("translate", *home, stdin=text.encode())
    assert translations == expected.out
