"""Tests of imported tensor2tensor models: weights, logits and resumed training."""

import re
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.interop.import_model import import_model
from t2t_repro.interop.tensor2tensor import sets as t2t_sets
from t2t_repro.interop.tensor2tensor.hparams import read_json
from t2t_repro.interop.tensor2tensor.importer import load_vocabulary, read
from t2t_repro.interop.tensor2tensor.variable_names import convert_from_t2t, t2t_name
from t2t_repro.models.variables import named_variables
from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.system.errors import UserError
from t2t_repro.training.loop import TrainingLoop
from t2t_repro.training.schedules import Schedule
from tests import golden
from tests.interop.tensor2tensor.run import (
    T2TRun,
    write_hparams,
    write_run,
    write_vocabulary,
)
from tests.training import toy

# Steps 7 to 9 from train_v1_ckpt on the batches of steps 1 to 3, computed by
# tensor2tensor 1.15.7 (utils/optimize.py:optimize) with TensorFlow 1.15.5 on one
# thread. This program reproduced steps 1 to 6 in train_v1.npz with errors of at most
# 5e-7 in the losses and 7e-8 in the weights.
STEPS_7_TO_9 = golden.load(
    Path(__file__).parents[2] / "data" / "golden" / "train_v1_steps_7_to_9.npz"
)


def import_run(run: T2TRun, model_dir: Path, **changes):
    """Returns the report and the model directory of an imported training."""
    report = import_model(
        lambda: read(
            checkpoint=run.checkpoint,
            hparams=read_json(run.hparams_json),
            vocab_file=run.vocab_file,
            **changes,
        ),
        model_dir,
    )
    return report, ModelDir(model_dir)


@pytest.fixture(scope="module")
def step_6(shared_dir, tmp_path_factory):
    """Returns tensor2tensor's arrays of 6 steps, and the import after step 6."""
    folder = tmp_path_factory.mktemp("six")
    golden_dir = shared_dir / "t2t" / "golden"
    arrays = golden.load(golden_dir / "train_v1.npz")
    run = T2TRun(
        golden_dir / "train_v1_ckpt",
        write_hparams(folder / "hparams.json", arrays),
        write_vocabulary(folder / "vocab.subwords", 101),
    )
    return arrays, *import_run(run, folder / "model")


def test_weights_moments_and_step_equal_the_checkpoint(step_6, shared_dir):
    arrays, report, directory = step_6
    checkpoint = directory.checkpoint()
    assert checkpoint.step == report.source.step == 6
    assert (report.source.adam, report.source.every_array) == ("imported", True)
    final = {k.removeprefix("final/"): v for k, v in arrays.items() if "final/" in k}
    weights, optimizer = checkpoint.tensors(), checkpoint.tensors("optimizer")
    expected = convert_from_t2t(final, weights.shapes(), "post")
    reader = tf.train.load_checkpoint(
        str(shared_dir / "t2t/golden/train_v1_ckpt/model.ckpt-6")
    )
    m, v = (
        convert_from_t2t(
            {name: reader.get_tensor(f"training/{name}/{slot}") for name in final},
            weights.shapes(),
            "post",
        )
        for slot in ("Adam", "Adam_1")
    )
    assert report.source.used == len(final)
    for name, value in expected.items():
        np.testing.assert_array_equal(weights.read(name), value, err_msg=name)
        np.testing.assert_array_equal(optimizer.read(f"m/{name}"), m[name])
        np.testing.assert_array_equal(optimizer.read(f"v/{name}"), v[name])
    assert len(optimizer.shapes()) == 2 * len(expected)
    assert report.parameters == sum(value.size for value in final.values())


class Recorder:
    """Progress reporter that records the loss and learning rate of each step."""

    def __init__(self):
        self.results = []

    def record_step(self, step, result):
        self.results.append([float(result.loss), float(result.rate)])

    def unreported(self):
        return []

    def log(self, line):
        raise AssertionError(line)

    def pause(self):
        return nullcontext()


def train(loop, arrays, count):
    """Trains on the first `count` golden batches; returns losses and rates."""
    batches = [
        toy.pack({side: arrays[f"{side}_{number}"] for side in ("inputs", "targets")})
        for number in range(count)
    ]
    recorder = Recorder()
    loop.hparams = loop.hparams.replace(train_steps=loop.step + count)
    loop.run(lambda step: batches, recorder, lambda step: None)
    return np.array(recorder.results)


@pytest.mark.medium
def test_resumed_training_equals_tensor2tensor(step_6):
    arrays, _, directory = step_6
    hparams = directory.hparams().replace(eval_steps=0)
    model = directory.model(directory.checkpoint())
    strategy = tf.distribute.get_strategy()
    loop = TrainingLoop(model, hparams, strategy, directory.checkpoint_dir)
    assert loop.restore() == 6
    losses, rates = train(loop, arrays, 3).T
    assert loop.step == int(STEPS_7_TO_9["global_step"]) == 9
    np.testing.assert_allclose(losses, STEPS_7_TO_9["losses"], atol=1e-5)
    np.testing.assert_allclose(rates, STEPS_7_TO_9["learning_rates"], rtol=1e-6)
    ours = {name: v.numpy() for name, v in loop.weights.items()}
    theirs = golden.t2t_variables(STEPS_7_TO_9)
    recorded = {
        name: array.shape
        for name, array in ours.items()
        if name == "embedding/table" or t2t_name(name, "post") in theirs
    }
    assert len(recorded) == 8
    for name, value in convert_from_t2t(theirs, recorded, "post").items():
        np.testing.assert_allclose(ours[name], value, atol=1e-5, err_msg=name)


# Golden cases with a vocabulary of 203 subwords.
CASES = [
    "v1_postnorm",
    "v3_prenorm",
    "v1_dk",
    "v1_posemb",
    "v3_enc3dec1_1shard",
    "v3_notargetspace_vocabdiv",
    "relative",
]


@pytest.mark.parametrize("case", CASES)
def test_logits_equal_tensor2tensor(shared_dir, tmp_path, case):
    arrays = golden.load(shared_dir / "t2t/golden" / f"{case}.npz")
    run = write_run(tmp_path, arrays, 203)
    report, directory = import_run(
        run, tmp_path / "model", target_space_id=int(arrays["target_space_id"])
    )
    assert "the checkpoint is of step 150" in report.text()
    model = directory.model(directory.checkpoint())
    logits = model(
        {
            "inputs": tf.constant(arrays["inputs"]),
            "targets": tf.constant(arrays["targets"]),
        }
    )
    np.testing.assert_allclose(logits.numpy(), arrays["logits"], atol=1e-4)
    assert report.to_dict()["vocab_size"] == 203
    assert report.table_rows == arrays["logits"].shape[-1]


def test_checkpoint_without_moments_starts_with_a_new_warm_up(shared_dir, tmp_path):
    arrays = golden.load(shared_dir / "t2t/golden/v1_postnorm.npz")
    report, directory = import_run(write_run(tmp_path, arrays, 203), tmp_path / "model")
    assert report.source.adam == "the checkpoint contains no moments"
    assert f"Adam will start with zero moments: {report.source.adam}" in report.text()
    assert "is of step 150; further training begins at step 0" in report.text()
    schedule = Schedule.from_hparams(report.source.hparams)
    assert float(schedule(0)) == pytest.approx(0.0003 / 100)
    assert float(schedule(99)) == pytest.approx(0.0003)
    checkpoint = directory.checkpoint()
    assert checkpoint.has_optimizer and checkpoint.step == 0
    optimizer = checkpoint.tensors("optimizer")
    for name in optimizer.shapes():
        assert not optimizer.read(name).any()


def test_averaged_checkpoint_is_imported_without_moments(shared_dir, tmp_path):
    # avg_checkpoints.py averages the powers and the moments and sets the step to 0.
    prefix = shared_dir / "t2t" / "golden" / "avg_ckpts" / "averaged.ckpt-0"
    reader = tf.train.load_checkpoint(str(prefix))
    shapes = reader.get_variable_to_shape_map()
    hidden = "transformer/body/encoder/layer_0/ffn/conv1/kernel"
    values = t2t_sets.load("transformer_base") | {
        "hidden_size": 8,
        "num_heads": 2,
        "filter_size": shapes[hidden][1],
        "num_hidden_layers": sum(
            re.fullmatch(r"transformer/body/encoder/layer_\d+/ffn/conv1/bias", name)
            is not None
            for name in shapes
        ),
    }
    vocab_file = write_vocabulary(tmp_path / "vocab", 23)
    report = import_model(lambda: read(prefix, values, vocab_file), tmp_path / "model")
    assert report.source.step == 0
    assert "moments do not belong to step 0" in report.source.adam
    assert sum(name.endswith("/Adam_1") for name in report.unused["Adam's moments"])
    tensors = ModelDir(tmp_path / "model").checkpoint().tensors()
    np.testing.assert_array_equal(
        tensors.read("encoder/layer_0/feed_forward/hidden/kernel"),
        reader.get_tensor(hidden),
    )


def test_rejects_separate_vocabularies(shared_dir, tmp_path):
    arrays = golden.load(shared_dir / "t2t/golden/v3_unshared.npz")
    with pytest.raises(UserError, match=r"vocabularies of 151, 203 subwords"):
        import_run(write_run(tmp_path, arrays, 203), tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_vocabulary_file_may_have_any_name(tmp_path):
    path = write_vocabulary(tmp_path / "vocab.translate_ende_wmt8k.8192", 20)
    tokenizer = load_vocabulary(path)
    assert (tokenizer.vocab_size, tokenizer.file_name) == (20, "vocab.subwords")
    with pytest.raises(UserError, match=r"--vocab_file .*none: No such file"):
        load_vocabulary(tmp_path / "none")


def test_imports_into_an_empty_directory(shared_dir, tmp_path):
    arrays = golden.load(shared_dir / "t2t/golden/v1_posemb.npz")
    (tmp_path / "model").mkdir()
    _, directory = import_run(write_run(tmp_path, arrays, 203), tmp_path / "model")
    model = directory.model(directory.checkpoint())
    assert "input_position/table" in named_variables(model)
