"""Tests of `train --init_from`: a training that starts from another model's weights."""

import json
import re
import shutil

import numpy as np
import pytest

import t2t_repro
from t2t_repro.runs import checkpoints
from t2t_repro.runs.model_dir import ModelDir
from tests import run_command, tiny
from tests.interop.marian.small_marian import SmallMarian

pytestmark = [
    pytest.mark.medium,
    pytest.mark.usefixtures("without_tracing"),
    pytest.mark.filterwarnings("ignore:Even though the `tf.config"),
]


UNCHANGED = "learning_rate_scale=0,train_steps=1,average_last=1"


def train(trained, model_dir, overrides, *flags):
    """Runs the command on the tiny corpus; returns its result."""
    run = tiny.Trained(trained.folder, None)
    arguments = run.arguments(overrides)
    arguments[arguments.index("--model_dir") + 1] = str(model_dir)
    return run_command.run("train", *arguments, *map(str, flags))


def weights(checkpoint):
    file = checkpoint.tensors()
    return {name: file.read(name) for name in file.shapes()}


def assert_equal_weights(left, right):
    assert left.keys() == right.keys()
    for name, value in left.items():
        np.testing.assert_array_equal(value, right[name], err_msg=name)


def test_a_training_that_changes_nothing_translates_like_its_origin(trained, tmp_path):
    flags = ("--init_from", trained.model_dir)
    done = train(trained, tmp_path / "new", UNCHANGED, *flags)
    assert done.status == 0, done.err
    new, origin = ModelDir(tmp_path / "new"), ModelDir(trained.model_dir)
    assert_equal_weights(weights(new.checkpoint()), weights(origin.checkpoint()))
    lines = [source for source, _ in tiny.pairs("test")]
    texts = [t2t_repro.load(folder.path).translate(lines) for folder in (new, origin)]
    assert texts[0] == texts[1]
    # The training is scored, although its step is within the warm-up.
    assert json.loads(done.out)["bleu"] == trained.result["bleu"]
    record = json.loads(done.out)["origin"]
    assert record == new.provenance().origin
    assert (record["path"], record["weights"]) == (str(trained.model_dir), "averaged")
    assert f"starting from {trained.model_dir} (averaged, weights " in done.err


def test_ten_steps_equal_those_of_a_copy_made_by_hand(trained, tmp_path):
    origin = ModelDir(trained.model_dir)
    steps = "train_steps=10,checkpoint_steps=10,average_last=1,warmup_steps=3"
    done = train(trained, tmp_path / "new", steps, "--init_from", trained.model_dir)
    assert done.status == 0, done.err
    values = weights(origin.checkpoint("averaged"))
    zeros = {f"{m}/{k}": np.zeros_like(v) for m in "mv" for k, v in values.items()}
    hand = ModelDir(tmp_path / "hand")
    hand.path.mkdir()
    for name in ("model.json", "hparams.yaml", "vocab.model"):
        shutil.copy(trained.model_dir / name, hand.path)
    checkpoints.save(hand.checkpoint_dir, 0, values, zeros)
    flags = ("--accept_changes", "warmup_steps")
    done = train(trained, hand.path, steps, *flags)
    assert done.status == 0, done.err
    new = weights(ModelDir(tmp_path / "new").checkpoint("latest"))
    assert_equal_weights(new, weights(hand.checkpoint("latest")))
    assert any(np.any(new[name] != values[name]) for name in new)


def test_resumes_without_the_origin_and_rejects_another_one(trained_copy, tmp_path):
    origin = trained_copy.model_dir
    # The architecture is that of the origin, because the set lacks it.
    training = "learning_rate_scale: 0.05\nwarmup_steps: 9\ntokens_per_batch: 256\n"
    used = "problem: files\naverage_last: 1\ncheckpoint_minutes: 9\n" + training
    trained_copy.hparams.write_text(used, encoding="utf-8")
    new = tmp_path / "new"
    first = origin / "checkpoints/step-00000002"
    done = train(trained_copy, new, "train_steps=1", "--init_from", first)
    assert done.status == 0, done.err
    assert ModelDir(new).provenance().origin["weights"] == "step-00000002"
    assert ModelDir(new).hparams().d_model == 16
    done = train(trained_copy, new, "train_steps=2", "--init_from", origin)
    assert done.status == 2
    assert "omit --init_from to resume, or give another --model_dir" in done.err
    shutil.rmtree(origin)
    done = train(trained_copy, new, "train_steps=2", "--init_from", first)
    assert done.status == 0, done.err
    assert f"--init_from {first} does not exist; resuming without it" in done.err
    assert "resuming from step 1" in done.err
    assert json.loads(done.out)["origin"]["weights"] == "step-00000002"
    shutil.rmtree(new / "checkpoints")
    done = train(trained_copy, new, "train_steps=3")
    assert done.status == 2
    assert f"contains no checkpoint yet; give --init_from {first} again" in done.err


def test_a_folder_of_marian_is_imported_and_its_language_labels_are_required(
    trained_copy, tmp_path
):
    folder = SmallMarian().write(tmp_path / "marian")
    used = "problem: files\ntokens_per_batch: 256\ncheckpoint_minutes: 9\n"
    trained_copy.hparams.write_text(used, encoding="utf-8")
    flags = ("--init_from", folder)
    done = train(trained_copy, tmp_path / "new", UNCHANGED, *flags)
    assert done.status == 2
    assert re.search(r"source 1 of the train split, '.*', does not begin", done.err)
    assert not (tmp_path / "new").exists()
    for split in tiny.SIZES:
        path = trained_copy.data_dir / f"{split}.en"
        lines = path.read_text(encoding="utf-8").splitlines()
        path.write_text("".join(f">>deu<< {line}\n" for line in lines), "utf-8")
    done = train(trained_copy, tmp_path / "new", UNCHANGED, *flags)
    assert done.status == 0, done.err
    flags = ("--folder", str(folder), "--model_dir", str(tmp_path / "imported"))
    assert run_command.run("import_marian", *flags).status == 0
    new, imported = ModelDir(tmp_path / "new"), ModelDir(tmp_path / "imported")
    assert_equal_weights(weights(new.checkpoint()), weights(imported.checkpoint()))
    assert new.tokenizer().fingerprint == imported.tokenizer().fingerprint
    expected = imported.hparams()
    assert expected.search == "marian"
    for name in ("search", "beam_size", "alpha", "position", "d_ff", "start_symbol"):
        assert getattr(new.hparams(), name) == getattr(expected, name)


@pytest.mark.parametrize(
    ("contents", "words"),
    [
        ({"config.json": "{"}, "config.json"),
        ({"hparams.json": "{}"}, "hparams.json lacks hidden_size"),
        ({"ckpt-5.index": ""}, "expected one *.yml, found none"),
        ({"notes.txt": ""}, "is neither a model directory nor a checkpoint in one"),
    ],
)
def test_the_files_of_a_folder_determine_its_importer(
    trained, tmp_path, contents, words
):
    folder = tmp_path / "folder"
    folder.mkdir()
    for name, text in contents.items():
        (folder / name).write_text(text)
    done = train(trained, tmp_path / "new", "", "--init_from", folder)
    assert done.status == 2
    assert words in done.err
    assert str(folder) in done.err
    assert not (tmp_path / "new").exists()
