"""Tests of saving, reading, checking and locking checkpoints."""

import errno
import hashlib
import json
import os
import resource
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.models.variables import named_variables
from t2t_repro.runs import checkpoints, tensor_file
from t2t_repro.system.errors import UserError
from tests.training import toy

DATA = "weights.data-00000-of-00001"


def arrays(variables):
    return {name: v.numpy() for name, v in variables.items()}


@contextmanager
def files_no_longer_than(size):
    """Simulates a full disk: writes beyond `size` bytes per file fail."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture(scope="module")
def model():
    return toy.model()


@pytest.fixture
def saved(tmp_path, model):
    """A checkpoint of the toy model without optimizer state."""
    return checkpoints.save(tmp_path, 7, named_variables(model))


@pytest.fixture
def small(tmp_path):
    """Function that saves a checkpoint with one weight and one optimizer tensor."""

    def save(step, **options):
        value = {"w": np.full(3, step, "float32")}
        options = {"optimizer": value, **options}
        return checkpoints.save(tmp_path, step, value, **options)

    return save


def test_restores_every_variable_by_name(saved, model):
    fresh = toy.model(toy.HPARAMS.replace(seed=2))
    theirs, ours = named_variables(model), named_variables(fresh)
    kernel = "encoder/layer_0/self_attention/query/kernel"
    assert not np.array_equal(theirs[kernel].numpy(), ours[kernel].numpy())
    saved.tensors().assign(ours)
    for name, value in arrays(theirs).items():
        np.testing.assert_array_equal(ours[name].numpy(), value, err_msg=name)


def test_saves_every_variable_under_its_name(saved):
    attention = [f"{part}/kernel" for part in ("query", "key", "value", "output")]
    dense = [f"{part}/{x}" for part in ("hidden", "output") for x in ("kernel", "bias")]
    norm = ["layer_norm/scale", "layer_norm/bias"]
    expected = {"embedding/table", "target_space/table"}
    for side, attentions in (
        ("encoder", ["self_attention"]),
        ("decoder", ["self_attention", "cross_attention"]),
    ):
        layer = f"{side}/layer_0"
        expected |= {f"{layer}/feed_forward/{name}" for name in dense}
        expected |= {f"{layer}/{a}/{name}" for a in attentions for name in attention}
        residuals = [f"{name}_residual" for name in (*attentions, "feed_forward")]
        expected |= {f"{layer}/{r}/{name}" for r in residuals for name in norm}
    shapes = saved.tensors().shapes()
    assert set(shapes) == expected
    assert shapes["embedding/table"] == (toy.VOCAB_SIZE, 16)


def test_restores_step_and_metadata(small, tmp_path):
    small(3, meta={"averaged_steps": [1, 2]}, name="averaged")
    checkpoint = checkpoints.open_checkpoint(tmp_path / "averaged")
    assert checkpoint.step == 3
    assert checkpoint.meta() == {"step": 3, "averaged_steps": [1, 2]}
    assert checkpoints.list_checkpoints(tmp_path) == []


def test_rejects_a_folder_without_a_checkpoint(tmp_path):
    for text in (None, "", "[1]", "{}"):
        if text is not None:
            (tmp_path / "checkpoint.json").write_text(text)
        with pytest.raises(UserError, match=r"is not a checkpoint.*checkpoint\.json"):
            checkpoints.open_checkpoint(tmp_path)


def test_lists_checkpoints_by_step(small, tmp_path):
    for step in (20, 100_000_000, 3):
        small(step)
    listed = checkpoints.list_checkpoints(tmp_path)
    assert [c.step for c in listed] == [3, 20, 100_000_000]
    assert listed[0].path.name == "step-00000003"
    assert checkpoints.list_checkpoints(tmp_path / "absent") == []


def test_save_replaces_an_existing_checkpoint(small, tmp_path):
    small(5)
    small(5, optimizer=None, meta={"again": True})
    (checkpoint,) = checkpoints.list_checkpoints(tmp_path)
    assert not checkpoint.has_optimizer
    assert checkpoint.meta()["again"]
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000005"]


def test_full_states_are_the_newest_two_folders(small, tmp_path):
    assert checkpoints.full_states(tmp_path) == []
    for step in (1, 2, 3):
        small(step)
    (tmp_path / "step-00000003" / "checkpoint.json").unlink()
    assert [c.step for c in checkpoints.full_states(tmp_path)] == [3, 2]
    assert [c.step for c in checkpoints.list_checkpoints(tmp_path)] == [1, 2]


def test_saves_after_an_interrupted_save(small, tmp_path):
    aside = tmp_path / ".writing-step-00000002"
    aside.mkdir()
    (aside / "junk").write_bytes(b"half")
    checkpoint = small(2)
    assert not aside.exists()
    assert not (checkpoint.path / "junk").exists()


def test_a_full_disk_keeps_the_existing_checkpoint(small, tmp_path, model):
    small(1)
    with (
        files_no_longer_than(4096),
        pytest.raises(UserError, match=r"cannot write .*step-00000001"),
    ):
        checkpoints.save(tmp_path, 1, named_variables(model))
    (checkpoint,) = checkpoints.list_checkpoints(tmp_path)
    np.testing.assert_array_equal(checkpoint.tensors().read("w"), [1, 1, 1])
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000001"]


def test_rejects_a_file_in_place_of_the_folder(tmp_path):
    (tmp_path / "checkpoints").write_text("in the way")
    with pytest.raises(UserError, match=r"cannot write .*checkpoints/step-00000001"):
        checkpoints.save(tmp_path / "checkpoints", 1, {"w": np.zeros(3)})


@pytest.mark.parametrize("name", [DATA, "weights.index"])
def test_reports_a_truncated_file(saved, model, name):
    content = (saved.path / name).read_bytes()
    (saved.path / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(UserError, match=r"step-00000007/weights: .*another checkpoint"):
        saved.tensors().assign(named_variables(model))


def test_detects_one_wrong_byte(saved, model):
    content = bytearray((saved.path / DATA).read_bytes())
    content[len(content) // 2] ^= 1
    (saved.path / DATA).write_bytes(content)
    # Without the name of TensorFlow's function.
    with pytest.raises(
        UserError, match=r"00000007/weights: cannot read \S+ \([^{]*\);"
    ):
        saved.tensors().assign(named_variables(model))


def test_reports_a_missing_file(saved):
    with pytest.raises(UserError, match="step-00000007/optimizer: missing"):
        saved.tensors("optimizer")


@pytest.mark.parametrize(
    ("changes", "vocab_size", "name"),
    [
        ({}, 31, "embedding/table"),
        ({"d_ff": 32}, 30, "decoder/layer_0/feed_forward/hidden/bias"),
        ({"num_decoder_layers": 2}, 30, "decoder/layer_1/cross_attention/key/kernel"),
        ({"target_space_embedding": False}, 30, "target_space/table"),
    ],
)
def test_rejects_another_model_or_vocabulary(saved, changes, vocab_size, name):
    other = toy.model(toy.HPARAMS.replace(**changes), vocab_size)
    variables = named_variables(other)
    before = arrays(variables)
    with pytest.raises(UserError, match=rf"weights: {name} is .* in the checkpoint"):
        saved.tensors().assign(variables)
    # No variable was assigned before the error.
    for key, value in arrays(variables).items():
        np.testing.assert_array_equal(value, before[key])


def test_select_last_rejects_too_few_checkpoints(small, tmp_path):
    for step in (1, 2, 3):
        small(step)
    listed = checkpoints.list_checkpoints(tmp_path)
    assert [c.step for c in checkpoints.select_last(listed, 2)] == [2, 3]
    with pytest.raises(UserError, match=r"--last 4 exceeds .* \(3\) of the present"):
        checkpoints.select_last(listed, 4)


def test_metadata_is_json_with_a_checksum(small):
    checkpoint = small(12, meta={"loss": [0.1, 1e-9]})
    path = checkpoint.path / "checkpoint.json"
    values = json.loads(path.read_text(encoding="utf-8"))
    digest = values.pop("sha256")
    assert values == {"step": 12, "loss": [0.1, 1e-9]} == checkpoint.meta()
    text = json.dumps(values, sort_keys=True)
    assert digest == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("change", [('"step": 12', '"step": 13'), ("0.25", "0.75")])
def test_detects_altered_metadata(small, change):
    checkpoint = small(12, meta={"loss": 0.25})
    path = checkpoint.path / "checkpoint.json"
    path.write_text(path.read_text(encoding="utf-8").replace(*change))
    for read in (checkpoint.meta, lambda: checkpoints.open_checkpoint(checkpoint.path)):
        with pytest.raises(UserError, match=r"checkpoint\.json was altered"):
            read()


def test_reads_metadata_without_a_checksum(small):
    checkpoint = small(12)
    (checkpoint.path / "checkpoint.json").write_text('{"step": 12, "note": 1}')
    assert checkpoint.meta() == {"step": 12, "note": 1}


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"step": "12"}', '{"step": 1e999}', '{"step": true}', "\xff"],
)
def test_rejects_malformed_metadata(small, text):
    checkpoint = small(12)
    (checkpoint.path / "checkpoint.json").write_text(text, encoding="latin-1")
    with pytest.raises(UserError, match="is not a checkpoint"):
        checkpoints.open_checkpoint(checkpoint.path)


def test_metadata_that_cannot_be_read_are_not_damaged(small, monkeypatch):
    """Otherwise, an average would silently lose the identity of its data."""
    checkpoint = small(10)

    def fail(*_, **__):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(Path, "read_text", fail)
    with pytest.raises(UserError, match=r"cannot read .*json: Input/output") as raised:
        _ = checkpoint.data
    assert not isinstance(raised.value, tensor_file.DamagedCheckpointError)


def test_detects_metadata_of_another_step(small, tmp_path):
    small(12).path.rename(tmp_path / "step-00000013")
    (checkpoint,) = checkpoints.full_states(tmp_path)
    with pytest.raises(
        tensor_file.DamagedCheckpointError, match="has step 12, expected 13"
    ):
        checkpoints.require_whole(checkpoint)


def test_ignores_links_to_checkpoints(small, tmp_path):
    """The target may belong to another training, so it must not be pruned."""
    elsewhere = small(5).path.rename(tmp_path / "elsewhere")
    (tmp_path / "step-00000005").symlink_to(elsewhere)
    assert checkpoints.list_checkpoints(tmp_path) == []
    assert checkpoints.full_states(tmp_path) == []


def test_a_checkpoint_is_a_folder_with_its_description(small, tmp_path):
    checkpoint = small(5)
    assert checkpoints.is_checkpoint(checkpoint.path)
    assert not checkpoints.is_checkpoint(tmp_path)
    assert not checkpoints.is_checkpoint(checkpoint.path / "checkpoint.json")


def test_cannot_lock_a_deleted_checkpoint(small):
    checkpoint = small(5)
    with checkpoint.hold():
        pass
    shutil.rmtree(checkpoint.path)
    with pytest.raises(UserError, match="no longer exists"), checkpoint.hold():
        pass


def test_save_waits_until_a_checkpoint_is_read(small, tmp_path):
    saved = small(5, name="averaged")
    with ThreadPoolExecutor(1) as pool:
        with saved.hold():
            replacement = pool.submit(small, 6, name="averaged")
            time.sleep(0.2)
            assert saved.meta()["step"] == 5
            np.testing.assert_array_equal(saved.tensors().read("w"), [5, 5, 5])
        replacement.result(timeout=60)
    assert saved.meta()["step"] == 6
    assert [path.name for path in tmp_path.iterdir()] == ["averaged"]


def test_a_deleted_checkpoint_is_not_reported_as_damaged(tmp_path):
    """Simulates a network file system where the lock is not visible."""
    saved = checkpoints.save(tmp_path, 1, {"w": np.zeros([2])})
    with pytest.raises(UserError, match="no longer exists"), saved.hold():
        shutil.rmtree(saved.path)
        saved.tensors()
    saved = checkpoints.save(tmp_path, 2, {"w": np.zeros([2])})
    with pytest.raises(tensor_file.DamagedCheckpointError), saved.hold():
        (saved.path / "weights.index").unlink()
        saved.tensors()


def test_keeps_zero_bytes_at_the_end_of_a_string(tmp_path):
    text = b"ends in zeros\0\0"
    tensor_file.write_tensors(tmp_path / "weights", {"text": text})
    assert tensor_file.TensorFile(tmp_path / "weights").read("text").item() == text


@pytest.mark.parametrize("name", ["m[1]", "a*b", "a?b", "a\\b", "[!x]", "\udcff"])
def test_reads_folders_whose_names_are_patterns_or_no_utf8(tmp_path, name):
    checkpoint = checkpoints.save(tmp_path / name, 5, {"w": np.arange(3)})
    np.testing.assert_array_equal(checkpoint.tensors().read("w"), [0, 1, 2])
    variable = tf.Variable([9, 9, 9], dtype=tf.int64)
    checkpoint.tensors().assign({"w": variable})
    np.testing.assert_array_equal(variable, [0, 1, 2])
    (checkpoint.path / "weights.index").unlink()
    with pytest.raises(tensor_file.DamagedCheckpointError):
        checkpoint.tensors()


@pytest.mark.parametrize(
    ("data", "steps"),
    [
        ("AAB", [3]),
        ("ABB", [2, 3]),
        ("ABA", [3]),
        ("--A", [1, 2, 3]),  # "-": saved by an earlier version.
        ("A--", [1, 2, 3]),
        ("AB-B", [2, 3, 4]),
    ],
)
def test_checkpoints_of_other_data_are_not_averaged(small, tmp_path, data, steps):
    small(0, meta={"data": data[-1]})  # The weights of an imported model.
    for step, one in enumerate(data, 1):
        small(step, meta={"data": None if one == "-" else one})
    averaged = checkpoints.checkpoints_to_average(tmp_path)
    assert [checkpoint.step for checkpoint in averaged] == steps


def test_an_imported_model_can_be_averaged_alone(small, tmp_path):
    assert checkpoints.checkpoints_to_average(tmp_path) == []
    imported = small(0)
    assert checkpoints.checkpoints_to_average(tmp_path) == [imported]
