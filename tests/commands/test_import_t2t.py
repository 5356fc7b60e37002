"""The command `import_t2t`: another program's model becomes one like any other."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.runs.checkpoints import list_checkpoints
from t2t_repro.runs.model_dir import ModelDir
from tests import golden, run_command, tiny
from tests.interop.tensor2tensor.run import T2TRun, write_hparams, write_vocabulary

pytestmark = pytest.mark.medium

VOCABULARY = "vocab.translate_ende_wmt8k.8192.subwords"


@pytest.fixture
def small(shared_dir, tmp_path):
    """A copy of the checkpoint that tensor2tensor wrote after six updates."""
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


def test_it_tells_what_came_along(small, tmp_path):
    done = import_it(small, tmp_path / "model")
    assert (done.status, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == (
        f"imported {small.checkpoint} (tensor2tensor) into {tmp_path / 'model'}"
    )
    assert lines[1].startswith("step 6; ")
    assert lines[1].endswith("; 101 subwords")
    assert "Adam's moments are imported: training goes on where it was" in lines
    assert lines[-1] == "languages: en to de; every array is used"
    names = sorted(path.name for path in (tmp_path / "model").iterdir())
    assert names == ["checkpoints", "hparams.yaml", "model.json", "vocab.subwords"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "t2t"]


def test_a_checkpoint_of_an_older_version_is_imported(shared_dir, tmp_path):
    """Its hparams.json lacks what later versions added."""
    folder = shared_dir / "t2t" / "real_checkpoint"
    run = T2TRun(folder, folder / "hparams.json", shared_dir / "t2t" / VOCABULARY)
    done = import_it(run, tmp_path / "model", "--json")
    assert (done.status, done.err) == (0, "")
    found = json.loads(done.out)
    assert (found["step"], found["vocab_size"], found["adam"]) == (1, 8190, "imported")
    meaningless = "hyper-parameters without meaning here"
    assert [*found["unused"]] == ["statistics", meaningless]
    assert "dropout=0.2" in found["unused"][meaningless]
    assert not found["every_array"]
    hparams = ModelDir(tmp_path / "model").hparams()
    assert (hparams.norm, hparams.learning_rate_schedule) == ("pre", "paper")
    assert (hparams.learning_rate_scale, hparams.warmup_steps) == (2.0, 8000)


def test_a_set_and_overrides_serve_where_there_is_no_hparams_json(small, tmp_path):
    values = json.loads(small.hparams_json.read_text("utf-8"))
    keys = ("hidden_size", "filter_size", "num_heads", "num_hidden_layers")
    done = import_it(
        small,
        tmp_path / "model",
        *("--t2t_hparams_set", "transformer_base_v1"),
        *("--t2t_hparams", ",".join(f"{key}={values[key]}" for key in keys)),
        hparams_json=None,
    )
    assert (done.status, done.err) == (0, "")


def test_it_is_trained_on_with_its_own_vocabulary_and_then_knows_its_data(
    small, tmp_path
):
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

    done = train(8)
    assert (done.status, done.err) == (0, "")
    assert f"resuming from step 6 in {model_dir}" in done.out
    assert "building a vocabulary" not in done.out
    steps = [c.step for c in list_checkpoints(model_dir / "checkpoints")]
    assert steps == [6, 8]
    found = ModelDir(model_dir).provenance()
    assert (found.problem, found.vocabulary_given) == ("files", True)
    # The second time it is a model like any other.
    done = train(9)
    assert (done.status, done.err) == (0, "")
    assert f"resuming from step 8 in {model_dir}" in done.out
    other = tiny.write_corpus(tmp_path / "other")
    (other / "train.en").write_text("one\n", encoding="utf-8")
    (other / "train.de").write_text("eins\n", encoding="utf-8")
    done = train(10, other)
    assert run_command.is_one_clear_line(done)
    assert "holds a model with other settings: data" in done.err


def test_what_needs_the_data_says_that_they_are_unknown(small, tmp_path):
    import_it(small, tmp_path / "model")
    done = run_command.run("evaluate", "--model_dir", str(tmp_path / "model"))
    assert run_command.is_one_clear_line(done)
    assert "was imported, so its data are unknown" in done.err


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


def no_checkpoint(run, tmp_path):
    return {"checkpoint": tmp_path / "elsewhere"}


def smaller_vocabulary(run, tmp_path):
    return {"vocab_file": write_vocabulary(tmp_path / "t2t" / "small", 99)}


def no_vocabulary(run, tmp_path):
    return {"vocab_file": run.hparams_json}


def another_hparams(run, tmp_path, **changes):
    values = json.loads(run.hparams_json.read_text("utf-8")) | changes
    path = tmp_path / "t2t" / "other.json"
    path.write_text(json.dumps(values), encoding="utf-8")
    return {"hparams_json": path}


def wider(run, tmp_path):
    return another_hparams(run, tmp_path, hidden_size=48)


def deeper(run, tmp_path):
    return another_hparams(run, tmp_path, num_hidden_layers=3)


def shallower(run, tmp_path):
    return another_hparams(run, tmp_path, num_hidden_layers=1)


def normed_before(run, tmp_path):
    norm = {"layer_preprocess_sequence": "n", "layer_postprocess_sequence": "da"}
    return another_hparams(run, tmp_path, **norm)


def untied(run, tmp_path):
    key = "shared_embedding_and_softmax_weights"
    return another_hparams(run, tmp_path, **{key: False})


def local(run, tmp_path):
    return another_hparams(run, tmp_path, self_attention_type="local_mask_right")


def in_use(run, tmp_path):
    return {"model_dir": tmp_path / "t2t"}


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (truncated, "cannot read transformer/"),
        (flipped, "cannot read "),
        (flipped_index, "model.ckpt-6: "),
        (no_checkpoint, "elsewhere.index does not exist"),
        (smaller_vocabulary, "of 101 subwords, but --vocab_file has 99"),
        (no_vocabulary, "hparams.json: the first two lines must be"),
        (wider, "width 24, but hidden_size is 48"),
        (deeper, "lacks transformer/body/decoder/layer_2/"),
        (shallower, "has transformer/body/decoder/layer_1/"),
        (normed_before, "layer_prepostprocess/layer_norm"),
        (untied, "shared_embedding_and_softmax_weights is false"),
        (local, "self_attention_type=local_mask_right change what the model"),
        (in_use, "is there and not empty"),
    ],
)
def test_what_cannot_be_imported_is_refused_in_a_line_and_nothing_is_left(
    small, tmp_path, spoil, words
):
    changes = {"model_dir": tmp_path / "model"} | spoil(small, tmp_path)
    before = sorted(path for path in tmp_path.rglob("*"))
    done = import_it(small, **changes)
    assert run_command.is_one_clear_line(done)
    assert words in done.err
    assert done.out == ""
    assert sorted(path for path in tmp_path.rglob("*")) == before


# The model of t2t/trained.


@pytest.fixture(scope="module")
def translating(shared_dir, tmp_path_factory):
    """tensor2tensor's own trained model, imported."""
    folder = shared_dir / "t2t" / "trained"
    run = T2TRun(folder, folder / "hparams.json", shared_dir / "t2t" / VOCABULARY)
    model_dir = tmp_path_factory.mktemp("trained") / "model"
    done = import_it(run, model_dir)
    assert (done.status, done.err) == (0, "")
    return model_dir


def sentences(shared_dir):
    """Returns the sentences, and what tensor2tensor made of them."""
    folder = shared_dir / "t2t" / "trained"
    source = shared_dir / "corpora" / "multi30k" / "test_2016_flickr.en"
    lines = (folder / "test.hyp").read_text("utf-8").split("\n")[:-1]
    found = json.loads((folder / "test_scores.json").read_text("utf-8"))
    return source, lines, found["ids"], found["scores"]


@pytest.mark.medium
def test_it_translates_as_tensor2tensor_does(translating, shared_dir, tmp_path):
    source, expected, ids, scores = sentences(shared_dir)
    output = tmp_path / "out.tsv"
    flags = ("--input_file", str(source), "--output_file", str(output), "--scores")
    done = run_command.run("translate", "--model_dir", str(translating), *flags)
    assert done.status == 0, done.err
    rows = [row.split("\t", 1) for row in output.read_text("utf-8").split("\n")[:-1]]
    assert len(rows) == len(expected) == 1000
    other = [n for n, row in enumerate(rows) if row[1] != expected[n]]
    assert len(other) <= 5
    limits = input_lengths(translating, source)
    for n, (score, _) in enumerate(rows):
        theirs = scores[n]
        if len(ids[n]) == limits[n] + 50:
            # Never ended: tensor2tensor leaves out the penalty (beam_search.py).
            theirs /= ((5 + len(ids[n])) / 6) ** 0.6
        # Another translation is as good by the model, or the search differs.
        tolerance = 1e-4 if n in other else 1e-3
        assert float(score) == pytest.approx(theirs, abs=tolerance), n


@pytest.mark.medium
def test_by_tensor2tensors_rules_every_score_is_its_own(
    translating, shared_dir, tmp_path
):
    """It took one sentence at a time, and left out the penalty where none ended."""
    source, expected, ids, scores = sentences(shared_dir)
    limits = input_lengths(translating, source)
    chosen = [n for n in range(1000) if len(ids[n]) == limits[n] + 50 or n < 5]
    assert len(chosen) > 5
    lines = source.read_text("utf-8").split("\n")
    some = tmp_path / "some.en"
    some.write_text("".join(f"{lines[n]}\n" for n in chosen), encoding="utf-8")
    flags = ("--input_file", str(some), "--scores", "--batch_size", "1")
    done = run_command.run(
        "translate", "--model_dir", str(translating), *flags, "--tensor2tensor_rules"
    )
    assert done.status == 0, done.err
    for n, row in zip(chosen, done.out.split("\n"), strict=False):
        score, text = row.split("\t", 1)
        assert text == expected[n]
        assert float(score) == pytest.approx(scores[n], abs=1e-3), n


def input_lengths(model_dir: Path, source: Path) -> np.ndarray:
    """Returns the subwords of every line, EOS included."""
    lines = source.read_text("utf-8").split("\n")[:-1]
    return ModelDir(model_dir).tokenizer().encode(tf.constant(lines)).row_lengths()


SERVE = """
import json, sys
sys.modules["t2t_repro"] = None
import tensorflow as tf
import tensorflow_text
model = tf.saved_model.load(sys.argv[1])
lines = json.loads(sys.argv[2])
found = model.signatures["serving_default"](tf.constant(lines))
keys = sorted(found, key=lambda key: found[key].dtype != tf.string)
texts, scores = (found[key].numpy() for key in keys)
print(json.dumps([[t.decode() for t in texts], [float(s) for s in scores]]))
"""


@pytest.mark.medium
def test_its_export_serves_the_same_without_this_package(
    translating, shared_dir, tmp_path
):
    source, expected, _, scores = sentences(shared_dir)
    flags = ("--model_dir", str(translating), "--export_dir", str(tmp_path / "export"))
    done = run_command.run("export", *flags, "--json")
    assert done.status == 0, done.err
    lines = source.read_text("utf-8").split("\n")[:8]
    found = subprocess.run(
        [
            sys.executable,
            *("-c", SERVE, json.loads(done.out)["saved_model"], json.dumps(lines)),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    texts, served = json.loads(found.stdout.splitlines()[-1])
    assert texts == expected[:8]
    np.testing.assert_allclose(served, scores[:8], atol=1e-3)
