"""Tests of `train --guard`: a second validation set that must not get worse."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf
from sacrebleu import corpus_bleu

from t2t_repro.evaluation.split_scores import translate
from t2t_repro.models.variables import named_variables
from t2t_repro.runs import checkpoints
from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.training.guard import choose
from t2t_repro.translation.build import build_translator
from t2t_repro.translation.loading import load_models
from t2t_repro.translation.options import TranslationOptions
from tests import run_command, tiny
from tests.commands.test_init_from import assert_equal_weights, weights

pytestmark = [
    pytest.mark.medium,
    pytest.mark.filterwarnings("ignore:Even though the `tf.config"),
]


SOURCES = [source for source, _ in tiny.pairs("train")[:8]]


class BeamSearch:
    """Translations by the beam search of several weights of one model.

    Attributes:
        translator: Translator.
        variables: Variables of its model by name.
    """

    def __init__(self, model_dir):
        loaded = load_models(model_dir)
        self.translator = build_translator(loaded, TranslationOptions(beam_size=2))
        self.variables = named_variables(loaded.models[0])

    def translate(self, values):
        """Returns the translations of `SOURCES`."""
        for name, variable in self.variables.items():
            variable.assign(values[name])
        return [each.text for each in translate(self.translator, SOURCES)[0]]


@pytest.fixture(scope="module")
def search(trained):
    return BeamSearch(trained.model_dir)


@pytest.fixture(scope="module")
def noisy(trained, search, tmp_path_factory):
    """Two checkpoints of random weights whose translations have words for BLEU."""
    copy = trained.copy_to(tmp_path_factory.mktemp("guard") / "copy")
    directory = ModelDir(copy.model_dir)
    values = weights(directory.checkpoint())
    found = []
    for seed in range(80):
        noise = np.random.default_rng(seed)
        changed = {
            name: (value + noise.normal(0, 0.6, value.shape)).astype("float32")
            for name, value in values.items()
        }
        texts = search.translate(changed)
        if corpus_bleu(texts, [texts]).score > 99.99:
            number = 99 - len(found)
            found.append(checkpoints.save(directory.checkpoint_dir, number, changed))
        if len(found) == 2:
            return found
    raise AssertionError("no two seeds give translations with words")


@pytest.fixture(scope="module")
def origin(noisy):
    """Checkpoint that the trainings start from."""
    return noisy[0]


def write_pairs(folder, targets, sources=SOURCES, split="val"):
    """Writes a split, by default the references of `SOURCES`; returns the folder."""
    for lang, lines in {"en": sources, "de": targets}.items():
        text = "".join(f"{line}\n" for line in lines)
        (folder / f"{split}.{lang}").write_text(text, "utf-8")
    return folder


@pytest.fixture(scope="module")
def guard(origin, search, tmp_path_factory):
    """A folder whose references are the origin's translations: its BLEU is 100."""
    folder = tmp_path_factory.mktemp("guard")
    return write_pairs(folder, search.translate(weights(origin)))


def train(trained, model_dir, origin, *flags):
    settings = (
        "validation_metric=loss,eval_steps=3,checkpoint_steps=3,train_steps=3,"
        "warmup_steps=2,average_last=1,beam_size=2"
    )
    arguments = tiny.Trained(trained.folder, None).arguments(settings)
    arguments[arguments.index("--model_dir") + 1] = str(model_dir)
    flags = ("--init_from", origin.path, *flags)
    # Tracing takes longer than a few small steps.
    tf.config.run_functions_eagerly(True)
    done = run_command.run("train", *arguments, *map(str, flags))
    tf.config.run_functions_eagerly(False)
    return done


@pytest.fixture(scope="module")
def text(trained, tmp_path_factory):
    """The tiny corpus with a single test pair."""
    copy = trained.copy_to(tmp_path_factory.mktemp("text") / "copy")
    write_pairs(copy.data_dir, ["eins"], ["one"], "test")
    return copy


@pytest.fixture(scope="module")
def strict(text, origin, guard, tmp_path_factory):
    """Result and model directory of a training that the guard rejects."""
    model_dir = tmp_path_factory.mktemp("strict") / "model"
    return train(text, model_dir, origin, "--guard", guard), model_dir


def test_a_training_that_damages_the_guard_ends_with_the_origin(
    strict, text, origin, guard
):
    """The validation loss falls, but any change lowers the guard's BLEU of 100."""
    done, model_dir = strict
    assert done.status == 0, done.err
    lines = done.err.splitlines()
    assert any("guard BLEU 100.00" in line for line in lines)
    rejected = [line for line in lines if line.endswith("(rejected by the guard)")]
    assert [line.split(":")[0] for line in rejected] == ["step 3"]
    rows = (model_dir / "validation_log.tsv").read_text("utf-8").splitlines()
    assert rows[0] == "step\tloss\tgreedy_bleu\tguard"
    losses = [float(row.split("\t")[1]) for row in rows[1:]]
    assert losses[-1] < losses[0]
    assert any(line.startswith("no checkpoint is significantly") for line in lines)
    assert_equal_weights(weights(ModelDir(model_dir).checkpoint()), weights(origin))
    result = json.loads(done.out)
    assert (result["averaged_steps"], result["guard"]["is_origin"]) == ([0], True)
    done = train(text, model_dir, origin, "--guard", guard)
    assert "reusing the score" in done.err
    assert json.loads(done.out) == result
    done = train(text, model_dir, origin)
    assert done.status == 2
    assert "give the same --guard" in done.err


def test_a_significantly_better_checkpoint_is_the_result(
    text, strict, origin, guard, search, tmp_path
):
    """The same training with another tolerance, and its translations as references."""
    shutil.copytree(strict[1], tmp_path / "model")
    directory = ModelDir(tmp_path / "model")
    last = weights(directory.checkpoint("latest"))
    copy = text.copy_to(tmp_path / "copy")
    write_pairs(copy.data_dir, search.translate(last))
    flags = ("--guard", guard, "--guard_tolerance", "100")
    done = train(copy, directory.path, origin, *flags)
    assert done.status == 0, done.err
    assert "reusing the training" in done.err
    result = json.loads(done.out)
    assert (result["averaged_steps"], result["guard"]["is_origin"]) == ([3], False)
    assert_equal_weights(weights(directory.checkpoint()), last)
    rows = {
        line.split()[1]: list(map(float, line.split()[2:]))
        for line in done.err.splitlines()
        if line.startswith("BLEU, ")
    }
    before, after, difference, p = rows["validation"]
    assert (after, difference) == (100, pytest.approx(100 - before, abs=0.01))
    assert 0 < p < 0.05
    assert rows["guard"][0] == 100


def test_candidates_must_be_better_and_are_tried_in_order(noisy, search):
    origin, other = noisy
    values, changed = map(weights, noisy)
    first, second = map(search.translate, (values, changed))
    assert not any(map(str.__eq__, first, second))
    good, same = (list(zip(SOURCES, texts, strict=True)) for texts in (second, first))

    def select(candidates, validation, tolerance):
        choice = choose(
            candidates,
            search.translator,
            search.variables,
            validation,
            same,
            "de",
            tolerance,
        )
        return choice, {name: v.numpy() for name, v in search.variables.items()}

    choice, selected = select([[other, origin], [other], [origin]], good, 0.5)
    assert (choice.checkpoints, choice.is_origin) == ([origin], True)
    assert_equal_weights(selected, values)
    assert choice.differences["guard"].first.score == pytest.approx(100)
    assert choice.differences["guard"].second.p_value == 1
    choice, selected = select([[other], [origin]], good, 101)
    assert (choice.checkpoints, choice.is_origin) == ([other], False)
    assert_equal_weights(selected, changed)
    # Worse.
    choice, selected = select([[other], [origin]], same, 101)
    assert (choice.checkpoints, choice.is_origin) == ([origin], True)
    assert_equal_weights(selected, values)
