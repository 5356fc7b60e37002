"""Tests of `train --guard`: a second validation set that must not get worse."""

import json

import numpy as np
import pytest
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
    pytest.mark.usefixtures("without_tracing"),
    pytest.mark.filterwarnings("ignore:Even though the `tf.config"),
]


SOURCES = [source for source, _ in tiny.pairs("train")[:12]]


@pytest.fixture(scope="module")
def origin(trained, tmp_path_factory):
    """Checkpoint of random weights whose translations have words for BLEU."""
    copy = trained.copy_to(tmp_path_factory.mktemp("guard") / "copy")
    directory = ModelDir(copy.model_dir)
    values = weights(directory.checkpoint())
    for seed in range(40):
        noise = np.random.default_rng(seed)
        changed = {
            name: (value + noise.normal(0, 0.6, value.shape)).astype("float32")
            for name, value in values.items()
        }
        checkpoint = checkpoints.save(directory.checkpoint_dir, 99, changed)
        texts = [each.text for each in translate(load(checkpoint)[1], SOURCES)[0]]
        if corpus_bleu(texts, [texts]).score > 99.99:
            return checkpoint
    raise AssertionError("no seed gives translations with words")


def load(origin):
    """Returns the model with the weights of a checkpoint, and its greedy translator."""
    loaded = load_models(origin.path.parents[1], str(origin.path))
    return loaded.models[0], build_translator(loaded, TranslationOptions(beam_size=1))


@pytest.fixture(scope="module")
def guard(origin, tmp_path_factory):
    """A folder whose references are the origin's translations: its BLEU is 100."""
    folder = tmp_path_factory.mktemp("guard")
    translations, _ = translate(load(origin)[1], SOURCES)
    texts = {"en": SOURCES, "de": [each.text for each in translations]}
    for lang, lines in texts.items():
        text = "".join(f"{line}\n" for line in lines)
        (folder / f"val.{lang}").write_text(text, "utf-8")
    return folder


def train(trained, model_dir, origin, *flags):
    settings = (
        "validation_metric=loss,eval_steps=2,checkpoint_steps=2,train_steps=6,"
        "warmup_steps=2,average_last=2"
    )
    arguments = tiny.Trained(trained.folder, None).arguments(settings)
    arguments[arguments.index("--model_dir") + 1] = str(model_dir)
    flags = ("--init_from", origin.path, *flags)
    return run_command.run("train", *arguments, *map(str, flags))


def test_the_result_is_the_best_checkpoint_that_the_guard_accepts(
    trained, origin, guard, tmp_path
):
    """The validation loss falls, but any change lowers the guard's BLEU of 100."""
    done = train(trained, tmp_path / "strict", origin, "--guard", guard)
    assert done.status == 0, done.err
    lines = done.err.splitlines()
    assert any("guard BLEU 100.00" in line for line in lines)
    rejected = [line for line in lines if line.endswith("(rejected by the guard)")]
    assert [line.split(":")[0] for line in rejected] == ["step 2", "step 4", "step 6"]
    rows = (tmp_path / "strict/validation_log.tsv").read_text("utf-8").splitlines()
    assert rows[0] == "step\tloss\tgreedy_bleu\tguard"
    losses = [float(row.split("\t")[1]) for row in rows[1:]]
    assert losses[-1] < losses[0]
    assert any(line.startswith("no checkpoint is better") for line in lines)
    directory = ModelDir(tmp_path / "strict")
    assert_equal_weights(weights(directory.checkpoint()), weights(origin))
    result = json.loads(done.out)
    assert (result["averaged_steps"], result["guard"]["is_origin"]) == ([0], True)
    done = train(trained, tmp_path / "strict", origin, "--guard", guard)
    assert "reusing the score" in done.err
    assert json.loads(done.out) == result
    done = train(trained, tmp_path / "strict", origin)
    assert done.status == 2
    assert "give the same --guard" in done.err


def test_an_accepted_checkpoint_is_compared_with_the_origin(trained, origin, tmp_path):
    """No word of the corpus is among the origin's translations."""
    flags = ("--guard", trained.data_dir, "--guard_tolerance", "0")
    done = train(trained, tmp_path / "new", origin, *flags)
    assert done.status == 0, done.err
    rows = (tmp_path / "new/validation_log.tsv").read_text("utf-8").splitlines()
    losses = [float(row.split("\t")[1]) for row in rows[1:]]
    best = 2 * losses.index(min(losses))
    assert json.loads(done.out)["averaged_steps"][-1] == best > 0
    lines = done.err.splitlines()
    (row,) = (line for line in lines if line.startswith("BLEU, guard "))
    before, after, difference, p = row.split()[2:]
    assert before == "0.00"
    assert float(difference) == float(after)
    assert 0 < float(p) <= 1


def test_candidates_are_tried_in_order_and_the_origin_is_the_last(
    origin, guard, tmp_path
):
    model, translator = load(origin)
    variables = named_variables(model)
    values = weights(origin)
    noise = np.random.default_rng(1)
    changed = {
        name: (value + noise.normal(0, 1, value.shape)).astype("float32")
        for name, value in values.items()
    }
    other = checkpoints.save(tmp_path, 7, changed)
    lines = (guard / "val.en").read_text("utf-8").splitlines()
    texts = (guard / "val.de").read_text("utf-8").splitlines()
    sets = {"guard": list(zip(lines, texts, strict=True))}

    def select(candidates, tolerance):
        choice = choose(candidates, translator, variables, sets, "de", tolerance)
        return choice, {name: v.numpy() for name, v in variables.items()}

    choice, selected = select([[other, origin], [other], [origin]], 0.5)
    assert (choice.checkpoints, choice.is_origin) == ([origin], True)
    assert_equal_weights(selected, values)
    assert choice.differences["guard"].first.score == pytest.approx(100)
    assert choice.differences["guard"].second.p_value == 1
    choice, selected = select([[other], [origin]], 101)
    assert (choice.checkpoints, choice.is_origin) == ([other], False)
    assert_equal_weights(selected, changed)
