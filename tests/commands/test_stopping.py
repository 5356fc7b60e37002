"""Tests of `train` with early stopping, epochs, and without validation text."""

import json
import math
import re
import shutil

import numpy as np
import pytest
from sacrebleu import corpus_bleu

from t2t_repro.runs.model_dir import ModelDir
from tests import run_command, tiny
from tests.commands.test_init_from import assert_equal_weights, weights

pytestmark = [
    pytest.mark.medium,
    pytest.mark.usefixtures("without_tracing"),
    pytest.mark.filterwarnings("ignore:Even though the `tf.config"),
]


def run(trained, model_dir, overrides, *flags):
    arguments = tiny.Trained(trained.folder, None).arguments(overrides)
    arguments[arguments.index("--model_dir") + 1] = str(model_dir)
    done = run_command.run("train", *arguments, *map(str, flags))
    assert done.status == 0, done.err
    return done


def test_a_training_that_only_gets_worse_ends_early_with_its_origin(trained, tmp_path):
    """A rate of 10 destroys the model, so that the loss grows from step 0 on."""
    settings = (
        "learning_rate_scale=10,eval_steps=1,early_stopping=2,train_steps=9,"
        "validation_metric=loss,checkpoint_steps=1"
    )
    flags = (tmp_path / "new", settings, "--init_from", trained.model_dir)
    flags += ("--validation", f"same={trained.data_dir}")
    done = run(trained, *flags)
    assert (
        "stopping early: the best validation was at step 0, 2 validations" in done.err
    )
    result = json.loads(done.out)
    assert result["averaged_steps"] == [0]
    assert result["bleu"] == trained.result["bleu"]
    directory = ModelDir(tmp_path / "new")
    log = (directory.path / "validation_log.tsv").read_text("utf-8").splitlines()
    losses = [float(row.split("\t")[1]) for row in log[1:]]
    assert [row.split("\t")[0] for row in log] == ["step", "0", "1", "2"]
    assert losses[0] < min(losses[1:])
    check_named_set(directory.path, [row.split("\t")[2] for row in log[1:]])
    origin = ModelDir(trained.model_dir).checkpoint("averaged")
    for checkpoint in (directory.checkpoint(), directory.checkpoint("best_bleu")):
        assert_equal_weights(weights(checkpoint), weights(origin))
    again = run(trained, *flags)
    assert "reusing the training" in again.err
    assert json.loads(again.out) == result


def check_named_set(model_dir, scores):
    """The set has the pairs of the validation split, so that its scores are equal."""
    rows = (model_dir / "validation_sets.tsv").read_text("utf-8").splitlines()
    names = [f"{step}\tsame\t{score}" for step, score in enumerate(scores)]
    assert rows == ["step\tset\tscore", *names]
    own, same = (
        (model_dir / f"validation/{name}.tsv").read_text("utf-8").splitlines()
        for name in ("val", "same")
    )
    assert own == same
    columns = list(zip(*(row.split("\t") for row in own), strict=True))
    assert list(zip(*columns[:2], strict=True)) == tiny.pairs("val")
    bleu = corpus_bleu(columns[2], [columns[1]]).score
    assert f"{bleu:.6f}" == scores[-1]


def test_epochs_replace_the_number_of_steps(trained, tmp_path):
    settings = "epochs=2.5,warmup_steps=99,tokens_per_batch=64,max_length=8"
    done = run(trained, tmp_path / "new", settings)
    batches = int(re.search(r"an epoch: .* in (\d+) batches", done.err)[1])
    steps = math.ceil(2.5 * batches)
    assert json.loads(done.out)["steps"] == steps > 4
    last = re.search(rf"step {steps}/{steps}  loss .*", done.err)[0]
    assert last.endswith(f"ETA 0:00:00  epoch {steps / batches:.2f}")
    # More epochs continue the training.
    more = settings.replace("2.5", "3")
    done = run(trained, tmp_path / "new", more)
    assert f"resuming from step {steps}" in done.err
    assert json.loads(done.out)["steps"] == 3 * batches


def test_validation_and_test_text_may_be_absent(trained, tmp_path):
    """The weights are those of the same training with a validation."""
    copy = tiny.Trained(trained.copy_to(tmp_path / "copy").folder, None)
    shutil.rmtree(copy.model_dir)
    shutil.rmtree(copy.data_dir / "encoded")
    for split in ("val", "test"):
        for lang in ("en", "de"):
            (copy.data_dir / f"{split}.{lang}").unlink()
    done = run(copy, copy.model_dir, "eval_steps=2")
    assert done.err.count("no validation text (val.*): no validation") == 1
    assert done.err.count("no test text (test.*): the model will not be scored") == 1
    result = json.loads(done.out)
    assert result["averaged_steps"] == [2, 4]
    assert "bleu" not in result
    names = {path.name for path in copy.model_dir.iterdir()}
    assert not names & {"best_bleu", "result.json"}
    new = weights(ModelDir(copy.model_dir).checkpoint())
    for name, value in weights(ModelDir(trained.model_dir).checkpoint()).items():
        # The other training ran in graphs, which round differently.
        np.testing.assert_allclose(new[name], value, atol=1e-6, err_msg=name)
    again = run(copy, copy.model_dir, "eval_steps=2")
    assert "reusing the training" in again.err
