"""What a checkpoint says was saved is what a fresh model gets back."""

import json
import resource
from contextlib import contextmanager

import numpy as np
import pytest

from t2t_repro.errors import UserError
from t2t_repro.models.transformer import named_variables
from t2t_repro.training import checkpoints
from tests.training import toy

DATA = "weights.data-00000-of-00001"


def arrays(variables):
    return {name: v.numpy() for name, v in variables.items()}


@contextmanager
def files_no_longer_than(size):
    """Makes every write beyond a size fail, as a full disk does."""
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
    """A checkpoint of the toy model without its optimizer."""
    return checkpoints.save(tmp_path, 7, named_variables(model))


@pytest.fixture
def small(tmp_path):
    """Saves checkpoints of one tensor, with an optimizer's state of one tensor."""

    def save(step, **options):
        value = {"w": np.full(3, step, "float32")}
        options = {"optimizer": value, **options}
        return checkpoints.save(tmp_path, step, value, **options)

    return save


def test_a_fresh_model_gets_every_variable_back_by_name(saved, model):
    fresh = toy.model(toy.HPARAMS.replace(seed=2))
    theirs, ours = named_variables(model), named_variables(fresh)
    kernel = "encoder/layer_0/self_attention/query/kernel"
    assert not np.array_equal(theirs[kernel].numpy(), ours[kernel].numpy())
    saved.tensors().assign_to(ours)
    for name, value in arrays(theirs).items():
        np.testing.assert_array_equal(ours[name].numpy(), value, err_msg=name)


def test_every_variable_is_listed_under_its_name(saved):
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


def test_the_step_and_the_notes_come_back(small, tmp_path):
    small(3, meta={"averaged_steps": [1, 2]}, name="averaged")
    found = checkpoints.open_checkpoint(tmp_path / "averaged")
    assert found.step == 3
    assert found.meta() == {"step": 3, "averaged_steps": [1, 2]}
    assert checkpoints.list_checkpoints(tmp_path) == []


def test_a_folder_that_is_no_checkpoint_is_refused(tmp_path):
    for text in (None, "", "[1]", "{}"):
        if text is not None:
            (tmp_path / "checkpoint.json").write_text(text)
        with pytest.raises(UserError, match=r"is not a checkpoint.*checkpoint\.json"):
            checkpoints.open_checkpoint(tmp_path)


def test_checkpoints_are_listed_by_step_and_not_by_name(small, tmp_path):
    for step in (20, 100_000_000, 3):
        small(step)
    found = checkpoints.list_checkpoints(tmp_path)
    assert [c.step for c in found] == [3, 20, 100_000_000]
    assert found[0].path.name == "step-00000003"
    assert checkpoints.list_checkpoints(tmp_path / "absent") == []


def test_a_checkpoint_saved_again_is_replaced_whole(small, tmp_path):
    small(5)
    small(5, optimizer=None, meta={"again": True})
    (found,) = checkpoints.list_checkpoints(tmp_path)
    assert not found.has_optimizer
    assert found.meta()["again"]
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000005"]


def test_pruning_keeps_the_newest_and_two_full_states(small, tmp_path):
    for step in (1, 2, 3, 4, 5):
        small(step)
    checkpoints.prune(tmp_path, keep=3)
    found = checkpoints.list_checkpoints(tmp_path)
    assert [(c.step, c.has_optimizer) for c in found] == [
        (3, False),
        (4, True),
        (5, True),
    ]
    files = {path.name for path in found[0].path.iterdir()}
    assert files == {"checkpoint.json", "weights.index", DATA}
    np.testing.assert_array_equal(found[0].tensors().read("w"), [3, 3, 3])


def test_pruning_a_few_keeps_them_all(small, tmp_path):
    small(1)
    small(2)
    checkpoints.prune(tmp_path, keep=20)
    assert [c.step for c in checkpoints.list_checkpoints(tmp_path)] == [1, 2]
    assert [c.step for c in checkpoints.full_states(tmp_path)] == [2, 1]


def test_full_states_are_the_newest_two_whatever_is_in_them(small, tmp_path):
    assert checkpoints.full_states(tmp_path) == []
    for step in (1, 2, 3):
        small(step)
    (tmp_path / "step-00000003" / "checkpoint.json").unlink()
    assert [c.step for c in checkpoints.full_states(tmp_path)] == [3, 2]
    assert [c.step for c in checkpoints.list_checkpoints(tmp_path)] == [1, 2]


def test_an_interrupted_save_is_ignored_and_swept_away(small, tmp_path):
    small(1)
    aside = tmp_path / ".writing-step-00000002"
    aside.mkdir()
    (aside / "weights.index").write_bytes(b"half")
    assert [c.step for c in checkpoints.list_checkpoints(tmp_path)] == [1]
    assert [c.step for c in checkpoints.full_states(tmp_path)] == [1]
    checkpoints.prune(tmp_path, keep=5)
    assert not aside.exists()


def test_an_interrupted_save_does_not_hinder_the_next(small, tmp_path):
    aside = tmp_path / ".writing-step-00000002"
    aside.mkdir()
    (aside / "junk").write_bytes(b"half")
    found = small(2)
    assert not aside.exists()
    assert not (found.path / "junk").exists()


def test_a_full_disk_is_told_and_leaves_what_was_there(small, tmp_path, model):
    small(1)
    with (
        files_no_longer_than(4096),
        pytest.raises(UserError, match=r"cannot write .*step-00000001"),
    ):
        checkpoints.save(tmp_path, 1, named_variables(model))
    (found,) = checkpoints.list_checkpoints(tmp_path)
    np.testing.assert_array_equal(found.tensors().read("w"), [1, 1, 1])
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000001"]


def test_a_file_in_the_place_of_the_folder_is_told(tmp_path):
    (tmp_path / "checkpoints").write_text("in the way")
    with pytest.raises(UserError, match=r"cannot write .*checkpoints/step-00000001"):
        checkpoints.save(tmp_path / "checkpoints", 1, {"w": np.zeros(3)})


@pytest.mark.parametrize("name", [DATA, "weights.index"])
def test_a_truncated_file_is_told_by_name(saved, model, name):
    content = (saved.path / name).read_bytes()
    (saved.path / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(UserError, match=r"step-00000007/weights: .*another checkpoint"):
        saved.tensors().assign_to(named_variables(model))


def test_one_wrong_byte_is_noticed(saved, model):
    content = bytearray((saved.path / DATA).read_bytes())
    content[len(content) // 2] ^= 1
    (saved.path / DATA).write_bytes(content)
    with pytest.raises(UserError, match="step-00000007/weights: cannot read"):
        saved.tensors().assign_to(named_variables(model))


def test_a_missing_file_is_told_by_name(saved):
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
def test_another_model_or_vocabulary_is_refused(saved, changes, vocab_size, name):
    other = toy.model(toy.HPARAMS.replace(**changes), vocab_size)
    variables = named_variables(other)
    before = arrays(variables)
    with pytest.raises(UserError, match=rf"weights: {name} is .* in the checkpoint"):
        saved.tensors().assign_to(variables)
    # Nothing was assigned before the refusal.
    for key, value in arrays(variables).items():
        np.testing.assert_array_equal(value, before[key])


def test_the_last_few_are_selected_or_refused(small, tmp_path):
    for step in (1, 2, 3):
        small(step)
    found = checkpoints.list_checkpoints(tmp_path)
    assert [c.step for c in checkpoints.select_last(found, 2)] == [2, 3]
    with pytest.raises(UserError, match=r"--last 4 .* there are 3"):
        checkpoints.select_last(found, 4)


def test_the_description_is_plain_json(small):
    found = small(12)
    text = (found.path / "checkpoint.json").read_text(encoding="utf-8")
    assert json.loads(text) == {"step": 12}
