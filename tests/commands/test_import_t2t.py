"""Tests of the command `import_t2t`, and of the commands on an imported model."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.runs.checkpoints import list_checkpoints
from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.serving.saved_model import write_saved_model
from t2t_repro.serving.signatures import ServingModule
from t2t_repro.translation.loading import load_models
from tests import forks, golden, run_command, tiny
from tests.interop.tensor2tensor.run import T2TRun, write_hparams, write_vocabulary

VOCABULARY = "vocab.translate_ende_wmt8k.8192.subwords"


@pytest.fixture
def small(shared_dir, tmp_path):
    """Returns a copy of a checkpoint of tensor2tensor at step 6."""
    folder = tmp_path / "t2t"
    shutil.copytree(shared_dir / "t2t/golden/train_v1_ckpt", folder)
    for path in folder.iterdir():
        path.chmod(0o644)
    arrays = golden.load(shared_dir / "t2t/golden/train_v1.npz")
    return T2TRun(
        folder / "model.ckpt-6",
        write_hparams(folder / "hparams.json", arrays, max_length=256, batch_size=512),
        write_vocabulary(folder / "vocab.subwords", 101),
    )


def import_it(run, model_dir, *more, **changes):
    return run_command.run("import_t2t", *run.flags(model_dir, **changes), *more)


def test_prints_a_report(small, tmp_path):
    result = import_it(small, tmp_path / "model")
    assert (result.status, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[0] == (
        f"imported {small.checkpoint} (tensor2tensor) into {tmp_path / 'model'}"
    )
    assert lines[1].startswith("step 6; ")
    assert lines[1].endswith("; 101 subwords")
    assert "Adam's moments are imported: training resumes at this step" in lines
    assert lines[-1] == "languages: en to de; every array is used"
    names = sorted(path.name for path in (tmp_path / "model").iterdir())
    assert names == ["checkpoints", "hparams.yaml", "model.json", "vocab.subwords"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "t2t"]


@pytest.mark.medium
def test_imports_a_checkpoint_of_an_older_version(shared_dir, tmp_path):
    """Its hparams.json lacks fields that later versions added."""
    folder = shared_dir / "t2t" / "real_checkpoint"
    run = T2TRun(folder, folder / "hparams.json", shared_dir / "t2t" / VOCABULARY)
    result = import_it(run, tmp_path / "model", "--json")
    assert (result.status, result.err) == (0, "")
    values = json.loads(result.out)
    assert (values["step"], values["vocab_size"], values["adam"]) == (
        1,
        8190,
        "imported",
    )
    meaningless = "hyper-parameters without meaning here"
    assert [*values["unused"]] == ["statistics", meaningless]
    assert "dropout=0.2" in values["unused"][meaningless]
    assert not values["every_array"]
    hparams = ModelDir(tmp_path / "model").hparams()
    assert (hparams.norm, hparams.learning_rate_schedule) == ("pre", "paper")
    assert (hparams.learning_rate_scale, hparams.warmup_steps) == (2.0, 8000)


def test_a_set_and_overrides_replace_hparams_json(small, tmp_path):
    values = json.loads(small.hparams_json.read_text("utf-8"))
    keys = ("hidden_size", "filter_size", "num_heads", "num_hidden_layers")
    result = import_it(
        small,
        tmp_path / "model",
        *("--t2t_hparams_set", "transformer_base_v1"),
        *("--t2t_hparams", ",".join(f"{key}={values[key]}" for key in keys)),
        hparams_json=None,
    )
    assert (result.status, result.err) == (0, "")


@pytest.mark.medium
def test_training_continues_with_the_imported_vocabulary(small, tmp_path):
    model_dir = tmp_path / "model"
    import_it(small, model_dir)
    data_dir = tiny.write_corpus(tmp_path / "data")

    def train(steps, corpus=data_dir):
        overrides = f"train_steps={steps},eval_steps=0,dropout=0.1"
        return run_command.run(
            "train",
            *("--hparams", f"{model_dir / 'hparams.yaml'},{overrides}"),
            *("--problem", "files", "--data_dir", str(corpus)),
            *("--source_lang", "en", "--target_lang", "de"),
            *("--model_dir", str(model_dir)),
        )

    result = train(8)
    assert (result.status, result.err) == (0, "")
    origin = f"starting from the weights in {model_dir} (step 6, imported from "
    assert origin in result.out
    assert "building a vocabulary" not in result.out
    steps = [c.step for c in list_checkpoints(model_dir / "checkpoints")]
    assert steps == [6, 8]
    provenance = ModelDir(model_dir).provenance()
    assert (provenance.problem, provenance.vocabulary_given) == ("files", True)
    # After this run the model directory has all metadata of a trained model.
    result = train(8)
    assert (result.status, result.err) == (0, "")
    assert f"reusing the training in {model_dir}: 8 steps are done" in result.out
    other = tiny.write_corpus(tmp_path / "other")
    (other / "train.en").write_text("one\n", encoding="utf-8")
    (other / "train.de").write_text("eins\n", encoding="utf-8")
    result = train(10, other)
    assert run_command.is_one_clear_line(result)
    assert "holds a model with other settings: data" in result.err


def test_evaluate_reports_that_the_data_are_unknown(small, tmp_path):
    import_it(small, tmp_path / "model")
    result = run_command.run("evaluate", "--model_dir", str(tmp_path / "model"))
    assert run_command.is_one_clear_line(result)
    assert "was imported, so its data are unknown" in result.err


def truncated(run, tmp_path):
    (path,) = run.checkpoint.parent.glob("*.data-*")
    path.write_bytes(path.read_bytes()[:1000])
    return {}


def flipped(run, tmp_path):
    (path,) = run.checkpoint.parent.glob("*.data-*")
    contents = bytearray(path.read_bytes())
    for at in range(len(contents) // 2, len(contents) // 2 + 16):
        contents[at] ^= 0xFF
    path.write_bytes(contents)
    return {}


def flipped_index(run, tmp_path):
    path = run.checkpoint.with_name(f"{run.checkpoint.name}.index")
    contents = bytearray(path.read_bytes())
    contents[100] ^= 0xFF
    path.write_bytes(contents)
    return {}


def normed_before(run, tmp_path):
    values = json.loads(run.hparams_json.read_text("utf-8"))
    values |= {"layer_preprocess_sequence": "n", "layer_postprocess_sequence": "da"}
    path = tmp_path / "t2t" / "other.json"
    path.write_text(json.dumps(values), encoding="utf-8")
    return {"hparams_json": path}


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (truncated, "cannot read transformer/"),
        (flipped, "cannot read "),
        (flipped_index, "model.ckpt-6: "),
        (normed_before, "layer_prepostprocess/layer_norm"),
    ],
)
def test_rejects_invalid_models_without_leftovers(small, tmp_path, spoil, words):
    changes = {"model_dir": tmp_path / "model"} | spoil(small, tmp_path)
    before = sorted(path for path in tmp_path.rglob("*"))
    result = import_it(small, **changes)
    assert run_command.is_one_clear_line(result)
    assert words in result.err
    assert result.out == ""
    assert sorted(path for path in tmp_path.rglob("*")) == before


@pytest.fixture(scope="module")
def translating(shared_dir, tmp_path_factory):
    """Imports the model in t2t/trained, which tensor2tensor trained."""
    folder = shared_dir / "t2t" / "trained"
    run = T2TRun(folder, folder / "hparams.json", shared_dir / "t2t" / VOCABULARY)
    model_dir = tmp_path_factory.mktemp("trained") / "model"
    result = import_it(run, model_dir)
    assert (result.status, result.err) == (0, "")
    return model_dir


def sentences(shared_dir):
    """Returns the file of sentences, and tensor2tensor's outputs, ids and scores."""
    folder = shared_dir / "t2t" / "trained"
    source = shared_dir / "corpora" / "multi30k" / "test_2016_flickr.en"
    lines = (folder / "test.hyp").read_text("utf-8").split("\n")[:-1]
    values = json.loads((folder / "test_scores.json").read_text("utf-8"))
    return source, lines, values["ids"], values["scores"]


@pytest.mark.medium
@pytest.mark.parametrize("count", [240, pytest.param(1000, marks=pytest.mark.slow)])
def test_translates_like_tensor2tensor(translating, shared_dir, tmp_path, count):
    """tensor2tensor did not finish its translation of line 231."""
    source, expected, ids, scores = sentences(shared_dir)
    lines = source.read_text("utf-8").split("\n")
    source, output = tmp_path / "some.en", tmp_path / "out.tsv"
    source.write_text("".join(f"{line}\n" for line in lines[:count]), "utf-8")
    flags = ("--input_file", str(source), "--output_file", str(output), "--scores")
    result = run_command.run("translate", "--model_dir", str(translating), *flags)
    assert result.status == 0, result.err
    rows = [row.split("\t", 1) for row in output.read_text("utf-8").split("\n")[:-1]]
    assert len(rows) == count
    assert len(expected) == 1000
    other = [n for n, row in enumerate(rows) if row[1] != expected[n]]
    assert len(other) <= count / 200
    limits = input_lengths(translating, source)
    for n, (score, _) in enumerate(rows):
        theirs = scores[n]
        if len(ids[n]) == limits[n] + 50:
            # tensor2tensor does not divide the scores of unfinished hypotheses by the
            # length penalty (beam_search.py).
            theirs /= ((5 + len(ids[n])) / 6) ** 0.6
        # A different translation must have the same score.
        tolerance = 1e-4 if n in other else 1e-3
        assert float(score) == pytest.approx(theirs, abs=tolerance), n


@pytest.mark.medium
def test_tensor2tensor_rules_give_tensor2tensors_scores(
    translating, shared_dir, tmp_path
):
    """The reference used batches of one and no penalty for unfinished hypotheses."""
    source, expected, ids, scores = sentences(shared_dir)
    limits = input_lengths(translating, source)
    indices = [n for n in range(1000) if len(ids[n]) == limits[n] + 50 or n < 5]
    assert len(indices) > 5
    lines = source.read_text("utf-8").split("\n")
    subset = tmp_path / "some.en"
    subset.write_text("".join(f"{lines[n]}\n" for n in indices), encoding="utf-8")
    flags = ("--input_file", str(subset), "--scores", "--batch_size", "1")
    result = run_command.run(
        "translate", "--model_dir", str(translating), *flags, "--tensor2tensor_rules"
    )
    assert result.status == 0, result.err
    for n, row in zip(indices, result.out.split("\n"), strict=False):
        score, text = row.split("\t", 1)
        assert text == expected[n]
        assert float(score) == pytest.approx(scores[n], abs=1e-3), n


def input_lengths(model_dir: Path, source: Path) -> np.ndarray:
    """Returns the number of subwords of each line, EOS included."""
    lines = source.read_text("utf-8").split("\n")[:-1]
    return ModelDir(model_dir).tokenizer().encode(tf.constant(lines)).row_lengths()


SERVE = """
import json, sys
sys.modules["t2t_repro"] = None
import tensorflow as tf
import tensorflow_text
model = tf.saved_model.load(sys.argv[1])
lines = json.loads(sys.argv[2])
outputs = model.signatures["serving_default"](tf.constant(lines))
texts, scores = (outputs[key].numpy() for key in ("translations", "scores"))
print(json.dumps([[t.decode() for t in texts], [float(s) for s in scores]]))
"""


@pytest.mark.medium
def test_an_export_gives_the_same_translations_without_this_package(
    translating, shared_dir, tmp_path
):
    source, expected, _, scores = sentences(shared_dir)
    loaded = load_models(translating)
    module = ServingModule(loaded.models, loaded.tokenizer, loaded.search())
    # The other signatures would take most of the time.
    module.functions = {"serving_default": module.functions["serving_default"]}
    version = tmp_path / "export" / "1"
    write_saved_model(module, version)
    lines = source.read_text("utf-8").split("\n")[:8]
    process = subprocess.run(
        [
            forks.python(),
            *("-c", SERVE, str(version), json.dumps(lines)),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    texts, served = json.loads(process.stdout.splitlines()[-1])
    assert texts == expected[:8]
    np.testing.assert_allclose(served, scores[:8], atol=1e-3)
