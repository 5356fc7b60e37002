"""Tests of the whole procedure: reuse of results, resuming, and errors."""

import io
import json
import os
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro import hparams
from t2t_repro.batches import pipeline
from t2t_repro.data.augmentation import Augmentation
from t2t_repro.data.prepared_data import prepare
from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.models.variables import named_variables
from t2t_repro.problems.files import FilesProblem
from t2t_repro.runs.averaging import average_checkpoints
from t2t_repro.runs.checkpoints import list_checkpoints
from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.system.errors import UserError
from t2t_repro.training import procedure, validator
from t2t_repro.training.procedure import make_batching_config, train_and_score
from t2t_repro.training.run import Run
from t2t_repro.training.training_pairs import TrainingPairs
from t2t_repro.training.workers import Workers
from t2t_repro.translation.translator import Translator
from tests import tiny
from tests.training import toy


class Interrupting(io.StringIO):
    """Stream that sends SIGINT when some words are written to it."""

    def __init__(self, words):
        super().__init__()
        self.words = words

    def write(self, text):
        if self.words in text:
            os.kill(os.getpid(), signal.SIGINT)
        return super().write(text)


def settings_of(trained, overrides="", **settings):
    """Returns the settings of another run on a training's data."""
    return Run(
        hparams=hparams.load(",".join(filter(None, [str(trained.hparams), overrides]))),
        problem=FilesProblem(str(trained.data_dir), None, None),
        data_dir=trained.data_dir,
        model_dir=ModelDir(trained.model_dir),
        strategy=tf.distribute.get_strategy(),
        **settings,
    )


def run(trained, overrides="", stream=None, **settings):
    """Runs the procedure; returns its result and its log lines."""
    stream = stream or io.StringIO()
    settings = settings_of(trained, overrides, stream=stream, **settings)
    return train_and_score(settings), stream.getvalue().splitlines()


def weights(path):
    (checkpoint,) = [c for c in list_checkpoints(path.parent) if c.path == path]
    file = checkpoint.tensors()
    return {name: file.read(name) for name in file.shapes()}


def test_writes_the_result_and_averages_the_last_checkpoints(trained):
    written = json.loads((trained.model_dir / "result.json").read_text("utf-8"))
    assert written == trained.result
    assert written["averaged_steps"] == [2, 4]
    folder = trained.model_dir / "checkpoints"
    first, last = (weights(folder / f"step-0000000{step}") for step in (2, 4))
    averaged = ModelDir(trained.model_dir).checkpoint("averaged").tensors()
    for name, value in first.items():
        mean = (value.astype("float64") + last[name]) / 2
        np.testing.assert_allclose(averaged.read(name), mean, atol=1e-7)


def test_a_second_run_reuses_everything(trained_copy):
    before = (trained_copy.model_dir / "averaged/weights.index").stat().st_mtime_ns
    result, lines = run(trained_copy)
    assert result == trained_copy.result
    reused = [
        line for line in lines if not line.startswith(("strategy", "warning", "max_"))
    ]
    assert [line.split(" in ")[0] for line in reused] == [
        f"reusing {trained_copy.data_dir}/encoded/files.en-de.sentencepiece-300/{name}"
        for name in ("vocab.model", "train", "val")
    ] + ["reusing the training", "reusing the score"]
    after = (trained_copy.model_dir / "averaged/weights.index").stat().st_mtime_ns
    assert before == after


def change_test_split(trained):
    path = trained.data_dir / "test.de"
    path.write_text(path.read_text("utf-8").replace("n", "m"), encoding="utf-8")


def damage_result(trained):
    (trained.model_dir / "result.json").write_text('{"bleu": 99', encoding="utf-8")


def strip_result(trained):
    path = trained.model_dir / "result.json"
    values = json.loads(path.read_text("utf-8"))
    del values["signature"]
    path.write_text(json.dumps(values), encoding="utf-8")


def average_by_hand(trained):
    directory = ModelDir(trained.model_dir)
    last = list_checkpoints(directory.checkpoint_dir)[-1:]
    average_checkpoints(last, directory.averaged_dir)


def remove_average(trained):
    shutil.rmtree(trained.model_dir / "averaged")


@pytest.mark.medium
@pytest.mark.parametrize(
    "change",
    [change_test_split, damage_result, strip_result, average_by_hand, remove_average],
)
def test_does_not_reuse_an_outdated_score(trained_copy, change):
    change(trained_copy)
    result, lines = run(trained_copy)
    assert any(line.startswith("reusing the training") for line in lines)
    assert "averaging the checkpoints of steps 2, 4" in lines
    assert result["averaged_steps"] == [2, 4]
    if change is change_test_split:
        assert result["test_fingerprint"] != trained_copy.result["test_fingerprint"]
    else:
        assert result["bleu"] == trained_copy.result["bleu"]


@pytest.mark.medium
def test_resumes_without_the_training_text_in_another_thread(trained, tmp_path):
    """An interrupted training resumes to the same weights."""
    copy = trained.copy_to(tmp_path / "copy")
    shutil.rmtree(copy.model_dir)
    # Interrupts after step 1, between two checkpoints.
    interrupt = Interrupting("step 1: validation loss")
    result, lines = run(copy, "eval_steps=1", interrupt, other_model=tmp_path / "b")
    assert result is None
    (start,) = (line for line in lines if line.startswith("starting from "))
    assert start.startswith("starting from random weights (seed 1), not from the model")
    assert f" --model_dir {tmp_path / 'b'}," in start
    assert lines[-1] == (
        "stopped at step 1 and saved a checkpoint; run the same command to resume"
    )
    assert not (copy.model_dir / "result.json").exists()
    (copy.data_dir / "train.de").unlink()
    with ThreadPoolExecutor(1) as pool:
        result, lines = pool.submit(run, copy).result()
    assert any(line.startswith("resuming with the encoded data: ") for line in lines)
    assert f"resuming from step 1 in {copy.model_dir}" in lines
    assert {**result, "seconds": 0} == {**trained.result, "seconds": 0}
    last = "checkpoints/step-00000004"
    theirs = weights(trained.model_dir / last)
    for name, value in weights(copy.model_dir / last).items():
        np.testing.assert_allclose(value, theirs[name], atol=1e-6, err_msg=name)
    with pytest.raises(UserError, match=r"train\.de does not exist"):
        run(copy, accepted=frozenset({"data"}))


def test_rejects_other_hyper_parameters_before_preparing_data(trained_copy):
    with pytest.raises(UserError, match="vocab_size was 300, is now 290"):
        run(trained_copy, "vocab_size=290")
    assert len(list((trained_copy.data_dir / "encoded").iterdir())) == 1


@pytest.mark.parametrize("name", ["train.de", "test.de"])
def test_reports_a_missing_file_before_training(trained_copy, name):
    shutil.rmtree(trained_copy.data_dir / "encoded")
    shutil.rmtree(trained_copy.model_dir)
    (trained_copy.data_dir / name).unlink()
    with pytest.raises(UserError, match=f"{name} does not exist"):
        run(trained_copy)
    assert not trained_copy.model_dir.exists()
    assert not (trained_copy.data_dir / "encoded").exists()


def change_training_data(trained):
    path = trained.data_dir / "train.de"
    path.write_text(path.read_text("utf-8").replace("n", "m"), encoding="utf-8")


def test_rejects_changed_data_before_preparing_them(trained_copy):
    shutil.rmtree(trained_copy.data_dir / "encoded")
    change_training_data(trained_copy)
    with pytest.raises(UserError, match=r"other settings: data was [0-9a-f]{24}"):
        run(trained_copy)
    assert not (trained_copy.data_dir / "encoded").exists()


@pytest.mark.medium
def test_encodes_changed_data_again_and_leaves_nothing_if_refused(trained_copy):
    change_training_data(trained_copy)
    shutil.rmtree(trained_copy.model_dir)
    stream = io.StringIO()
    with pytest.raises(UserError, match="increase max_length"):
        run(trained_copy, "max_length=2", stream)
    assert "building a vocabulary" in stream.getvalue()
    assert not trained_copy.model_dir.exists()


@pytest.mark.medium
def test_accepts_changed_data_and_hyper_parameters_on_request(trained_copy):
    change_training_data(trained_copy)
    vocabulary = (trained_copy.model_dir / "vocab.model").read_bytes()
    # More steps and another search need not be accepted.
    changes = "train_steps=6,beam_size=1,dropout=0.5"
    accepted = {"accepted": frozenset({"data", "dropout"})}
    result, lines = run(trained_copy, changes, **accepted)
    assert any(line.startswith("resuming from step 4") for line in lines)
    # The checkpoints of steps 2 and 4 are of other data, but the best is of the same
    # validation data.
    assert (result["averaged_steps"], result["beam_size"]) == ([6], 1)
    assert "bleu" in result
    best_bleu = trained_copy.model_dir / "best_bleu"
    starts_over = f"{best_bleu} starts over"
    assert not any(line.endswith(starts_over) for line in lines)
    # A new validation split is accepted, but its scores are not compared.
    (trained_copy.data_dir / "val.de").write_text("eins\n" * 5, encoding="utf-8")
    _, lines = run(trained_copy, changes.replace("6", "8"))
    assert any(line.endswith(starts_over) for line in lines)
    assert [c.step for c in list_checkpoints(best_bleu)] == [8]
    assert not any(line.startswith("reusing the score") for line in lines)
    # The weights require the old vocabulary.
    assert (trained_copy.model_dir / "vocab.model").read_bytes() == vocabulary
    # The accepted data now belong to the training.
    _, lines = run(trained_copy, changes.replace("6", "8"))
    assert any(line.startswith("reusing the training") for line in lines)


@pytest.fixture(scope="module")
def skipping(trained, tmp_path_factory):
    """Trains with pairs and steps that are skipped; returns model_dir, result and log.

    Pairs have an empty, a long, or a very long line of a million characters. The loss
    of every step is NaN. One batch contains all pairs. A model in its warm-up is not
    scored.
    """
    copy = trained.copy_to(tmp_path_factory.mktemp("skipping") / "copy")
    shutil.rmtree(copy.data_dir / "encoded")
    shutil.rmtree(copy.model_dir)
    for split in ("train", "val"):
        for lang, word in (("en", "one"), ("de", "eins")):
            path = copy.data_dir / f"{split}.{lang}"
            lines = path.read_text("utf-8").split("\n")
            lines[1] = word * (1_000_000 // len(word))
            if (split, lang) == ("train", "en"):
                lines[0], lines[4] = "", "one " * 50
            path.write_text("\n".join(lines), encoding="utf-8")
    build = procedure.build_model

    def build_with_nan(*arguments):
        model = build(*arguments)
        named_variables(model)["embedding/table"].assign(np.full((300, 16), np.nan))
        return model

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(procedure, "build_model", build_with_nan)
        return copy.model_dir, *run(copy, "warmup_steps=5,tokens_per_batch=2048")


@pytest.mark.medium
def test_lists_skipped_pairs(skipping):
    model_dir, result, lines = skipping
    assert result["averaged_steps"] == [2, 4]
    assert "bleu" not in result
    assert any(line.startswith("not scored: 4 steps are fewer than") for line in lines)
    assert not (model_dir / "result.json").exists()
    path = model_dir / "skipped_pairs.tsv"
    assert f"skipped 4 pairs, listed in {path}" in lines
    head, first, second, third, fourth, end = path.read_text("utf-8").split("\n")
    assert (head, end) == ("split\tline\treason", "")
    assert first == "train\t1\tempty source"
    assert second.startswith("train\t2\t")
    assert third.startswith("train\t5\tsource has ")
    assert third.endswith("; the maximum is 32")
    assert fourth.startswith("val\t2\t")


@pytest.mark.medium
def test_reports_the_lines_of_the_pairs_of_a_skipped_step(skipping):
    *_, lines = skipping
    skipped = [line for line in lines if line.startswith("skipped: ")]
    assert len(skipped) == 4
    numbers = [int(n) for n in skipped[0].partition("sentence pairs ")[2].split(", ")]
    assert sorted(numbers) == [3, 4, *range(6, 61)]


def test_sources_are_changed_only_on_request(trained):
    for overrides in ("", "augment_upper_case=0.5"):
        settings = settings_of(trained, overrides, stream=io.StringIO())
        data = prepare(settings.problem, settings.hparams, trained.data_dir, print)
        config = make_batching_config(settings.hparams)
        pairs = TrainingPairs(settings, data, config).batches(0, range)
        change = Augmentation(settings.hparams, data.tokenizer).change
        arguments = data.train, config, settings.hparams.seed
        expected = pipeline.batches(*arguments, change=change if overrides else None)
        for ours, theirs in zip(pairs.take(3), expected.take(3), strict=True):
            tf.nest.map_structure(np.testing.assert_array_equal, ours, theirs)


@pytest.mark.medium
def test_a_validation_translates_greedily(trained_copy):
    model = tiny.random_model()
    settings = settings_of(trained_copy, stream=io.StringIO())
    data = prepare(settings.problem, settings.hparams, trained_copy.data_dir, print)
    config, workers = make_batching_config(settings.hparams), Workers(settings.strategy)
    sources = [source for source, _ in settings.problem.pairs("val")]
    texts = []
    for size in (1, 2):
        search = DecodingConfig(size, extra_length=settings.hparams.decode_extra_length)
        translator = Translator(model, data.tokenizer, search)
        texts.append([each.text for each in translator.translate_lines(sources)])
    validator.Validator(settings, data, model, config, workers, toy.monitor(), "")(9)
    table = trained_copy.model_dir / "validation" / "val.tsv"
    lines = table.read_text("utf-8").split("\n")[:-1]
    assert [line.split("\t")[2] for line in lines] == texts[0] != texts[1]


@pytest.mark.medium
def test_traces_no_step_by_default(skipping):
    model_dir, *_ = skipping
    assert list((model_dir / "tensorboard").iterdir())
    assert not list(model_dir.rglob("*.xplane.pb"))


def test_batching_follows_the_hyper_parameters():
    config = make_batching_config(hparams.load("multi30k,max_length=99"))
    assert (config.tokens_per_batch, config.kind) == (4096, "sorted")
    assert (config.max_length, config.is_one_microbatch) == (99, True)
    # 25,000 tokens need seven micro-batches of up to 4,096.
    assert make_batching_config(hparams.load("base")).microbatch_bound == 3571
