"""Tests of `train --guard`: a second validation set that must not get worse."""

import json

import numpy as np
import pytest

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


def load(model_dir):
    """Returns the model of a directory and its greedy translator."""
    loaded = load_models(model_dir)
    return loaded.models[0], build_translator(loaded, TranslationOptions(beam_size=1))


@pytest.fixture
def guard(trained, tmp_path):
    """A folder whose references are the model's translations: its BLEU is 100."""
    folder = tmp_path / "guard"
    folder.mkdir()
    sources = [source for source, _ in tiny.pairs("train")[:12]]
    translations, _ = translate(load(trained.model_dir)[1], sources)
    texts = {"en": sources, "de": [each.text for each in translations]}
    for lang, lines in texts.items():
        text = "".join(f"{line}\n" for line in lines)
        (folder / f"val.{lang}").write_text(text, "utf-8")
    return folder


def train(trained, model_dir, *flags):
    settings = (
        "validation_metric=loss,eval_steps=2,checkpoint_steps=2,train_steps=6,"
        "warmup_steps=2,average_last=2"
    )
    arguments = tiny.Trained(trained.folder, None).arguments(settings)
    arguments[arguments.index("--model_dir") + 1] = str(model_dir)
    flags = ("--init_from", trained.model_dir, *flags)
    return run_command.run("train", *arguments, *map(str, flags))


def test_the_result_is_the_best_checkpoint_that_the_guard_accepts(
    trained, guard, tmp_path
):
    """The validation loss falls, but any change lowers the guard's BLEU of 100."""
    done = train(trained, tmp_path / "strict", "--guard", guard)
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
    directory, origin = ModelDir(tmp_path / "strict"), ModelDir(trained.model_dir)
    assert_equal_weights(weights(directory.checkpoint()), weights(origin.checkpoint()))
    result = json.loads(done.out)
    assert (result["averaged_steps"], result["guard"]["is_origin"]) == ([0], True)
    done = train(trained, tmp_path / "strict", "--guard", guard)
    assert "reusing the score" in done.err
    assert json.loads(done.out) == result
    done = train(trained, tmp_path / "strict")
    assert done.status == 2
    assert "give the same --guard" in done.err


def test_an_accepted_checkpoint_is_compared_with_the_origin(trained, guard, tmp_path):
    flags = ("--guard", guard, "--guard_tolerance", "100")
    done = train(trained, tmp_path / "new", *flags)
    assert done.status == 0, done.err
    rows = (tmp_path / "new/validation_log.tsv").read_text("utf-8").splitlines()
    losses = [float(row.split("\t")[1]) for row in rows[1:]]
    best = 2 * losses.index(min(losses))
    assert json.loads(done.out)["averaged_steps"][-1] == best > 0
    lines = done.err.splitlines()
    (row,) = (line for line in lines if line.startswith("BLEU, guard "))
    before, after, difference, p = row.split()[2:]
    assert before == "100.00"
    assert float(difference) == pytest.approx(float(after) - 100, abs=0.011)
    assert 0 < float(p) <= 1


def test_candidates_are_tried_in_order_and_the_origin_is_the_last(
    trained, guard, tmp_path
):
    model, translator = load(trained.model_dir)
    variables = named_variables(model)
    origin = ModelDir(trained.model_dir).checkpoint()
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
    choice, selected = select([[other], [origin]], 100)
    assert (choice.checkpoints, choice.is_origin) == ([other], False)
    assert_equal_weights(selected, changed)
