"""Tests of the files of an export."""

import shutil
from functools import partial

import pytest
import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2

from t2t_repro.serving.saved_model import write_saved_model
from t2t_repro.serving.versions import write_version
from t2t_repro.serving.warmup import WARMUP_FILE, warmup_requests
from t2t_repro.system.errors import UserError
from tests.serving import small

pytestmark = pytest.mark.medium


def test_a_version_contains_model_warmup_requests_and_card(export_dir):
    version = export_dir / "1"
    names = {path.name for path in version.iterdir()}
    assert names >= {"saved_model.pb", "variables", "assets.extra"}
    card = version / "assets.extra" / "README.md"
    assert card.read_text(encoding="utf-8") == "# small\n"
    assert not list(export_dir.glob(".writing*"))


@pytest.fixture(scope="module")
def loaded(export_dir, tmp_path_factory):
    copy = shutil.copytree(export_dir / "1", tmp_path_factory.mktemp("export") / "copy")
    return tf.saved_model.load(str(copy))


@pytest.mark.medium
def test_warmup_requests_are_valid_for_every_signature(export_dir, loaded):
    file = export_dir / "1" / "assets.extra" / WARMUP_FILE
    names = set()
    for record in tf.data.TFRecordDataset(str(file)):
        log = prediction_log_pb2.PredictionLog.FromString(record.numpy())
        request = log.predict_log.request
        assert request.model_spec.name == small.NAME
        signature = request.model_spec.signature_name
        names.add(signature)
        inputs = {
            name: tf.constant(tf.make_ndarray(tensor))
            for name, tensor in request.inputs.items()
        }
        outputs = loaded.signatures[signature](**inputs)
        rows = inputs["text"].shape[0]
        assert all(value.shape[0] == rows for value in outputs.values())
    assert names == loaded.signatures.keys()


def test_warmup_requests_are_only_for_the_signatures_of_the_module():
    requests = warmup_requests("m", {"serving_default": None, "terms": None})
    names = {request.model_spec.signature_name for request in requests}
    assert names == {"serving_default", "terms"}


@pytest.mark.parametrize(
    "error",
    [
        tf.errors.ResourceExhaustedError(None, None, "no space\nat all"),
        ValueError("no space\nat all"),  # While the fingerprint is computed.
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_full_disk_is_a_one_line_error_without_leftovers(
    module, tmp_path, monkeypatch, error
):
    def full(*_, **__):
        raise error

    monkeypatch.setattr(tf.saved_model, "save", full)
    with pytest.raises(UserError, match=r"--export_dir .*: no space$"):
        write_version(tmp_path / "e", partial(write_saved_model, module))
    assert list((tmp_path / "e").iterdir()) == []


def test_a_warmup_file_that_cannot_be_written_is_a_one_line_error(
    module, tmp_path, monkeypatch
):
    def fail(*_):
        raise tf.errors.UnknownError(None, None, "input/output error\nof the disk")

    monkeypatch.setattr(tf.saved_model, "save", lambda *_, **__: None)
    monkeypatch.setattr(tf.io.TFRecordWriter, "write", fail)
    with pytest.raises(UserError, match=r"--export_dir .*: input/output error$"):
        write_version(tmp_path / "e", partial(write_saved_model, module))
    assert list((tmp_path / "e").iterdir()) == []


def test_temporary_files_that_tensorflow_could_not_delete_are_deleted(tmp_path):
    left = tmp_path / "variables" / "variables_temp"
    left.mkdir(parents=True)
    (left / "part").touch()  # TensorFlow then cannot delete its temporary folder.
    module = tf.Module()
    module.functions = {}
    module.weight = tf.Variable(1.0)
    write_saved_model(module, tmp_path)
    assert not left.exists()
