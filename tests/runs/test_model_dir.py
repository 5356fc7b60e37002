"""Tests of the contents, locks and change checks of model directories."""

import json

import numpy as np
import pytest

from t2t_repro.models.variables import named_variables
from t2t_repro.problems.files import FilesProblem
from t2t_repro.runs import model_dir
from t2t_repro.runs.model_dir import ModelDir, build_model
from t2t_repro.system import locks
from t2t_repro.system.errors import UserError
from tests import tiny
from tests.runs.directories import HPARAMS, provenance, save


def contents(directory):
    files = (path for path in directory.path.rglob("*") if path.is_file())
    return {path.name: path.read_bytes() for path in files}


def test_reads_back_what_begin_writes(new_model, tokenizers):
    again = ModelDir(new_model.path)
    assert again.hparams() == HPARAMS
    assert again.provenance() == provenance(tokenizers[0])
    assert again.tokenizer().fingerprint == tokenizers[0].fingerprint
    assert sorted(contents(new_model)) == ["hparams.yaml", "model.json", "vocab.model"]


def test_restores_the_problem(tmp_path, tokenizers):
    data_dir = tiny.write_corpus(tmp_path / "data")
    directory = ModelDir(tmp_path / "m")
    metadata = provenance(tokenizers[0], data_dir=str(data_dir))
    directory.begin(HPARAMS, metadata, tokenizers[0])
    problem = directory.problem()
    assert isinstance(problem, FilesProblem)
    assert list(problem.pairs("test")) == tiny.pairs("test")


def test_begin_accepts_the_same_training(new_model, tokenizers):
    before = contents(new_model)
    new_model.begin(HPARAMS, provenance(tokenizers[0]), tokenizers[0])
    assert contents(new_model) == before


def test_begin_accepts_more_steps_and_other_decoding(new_model, tokenizers):
    longer = HPARAMS.replace(train_steps=200_000, eval_steps=7, beam_size=1, alpha=1.0)
    new_model.check(longer, provenance(tokenizers[0]))
    new_model.begin(longer, provenance(tokenizers[0]), tokenizers[0])
    assert new_model.hparams() == longer


@pytest.fixture
def imported(tmp_path, tokenizers):
    """The directory of an imported model, whose data are unknown."""
    directory = ModelDir(tmp_path / "imported")
    unknown = {"problem": None, "problem_fingerprint": None, "vocabulary_given": True}
    metadata = provenance(tokenizers[0], **unknown)
    directory.begin(HPARAMS, metadata, tokenizers[0])
    return directory


def test_an_imported_model_adopts_its_first_data(imported, tokenizers):
    assert imported.find_vocabulary() == imported.path / "vocab.model"
    with pytest.raises(UserError, match=r"was imported, so its data are unknown"):
        imported.problem()
    metadata = provenance(tokenizers[0], vocabulary_given=True)
    imported.begin(HPARAMS, metadata, tokenizers[0])
    assert imported.provenance() == metadata
    other = provenance(tokenizers[0], problem_fingerprint="files:en-de:" + "1" * 64)
    with pytest.raises(UserError, match=r"data was 0{24}, is now 1{24}"):
        imported.begin(HPARAMS, other, tokenizers[0])


def test_an_imported_model_keeps_its_function_and_vocabulary(imported, tokenizers):
    changed = HPARAMS.replace(problem="other", dropout=0.3, warmup_steps=7)
    metadata = provenance(tokenizers[0], vocabulary_given=True)
    imported.check(changed, metadata)
    with pytest.raises(UserError, match="d_ff was 8, is now 9; use"):
        imported.check(changed.replace(d_ff=9), metadata)
    french = provenance(tokenizers[0], target_lang="fr")
    with pytest.raises(UserError, match="target language was de, is now fr"):
        imported.begin(HPARAMS, french, tokenizers[0])
    with pytest.raises(UserError, match="vocabulary "):
        imported.begin(HPARAMS, provenance(tokenizers[1]), tokenizers[1])


def test_a_built_vocabulary_is_not_given(new_model, tmp_path):
    assert new_model.find_vocabulary() is None
    assert ModelDir(tmp_path / "none").find_vocabulary() is None


@pytest.mark.parametrize("field", ["problem", "problem_fingerprint"])
def test_rejects_partly_unknown_metadata(new_model, field):
    path = new_model.path / "model.json"
    values = json.loads(path.read_text(encoding="utf-8")) | {field: None}
    path.write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(UserError, match=r"model\.json is damaged"):
        new_model.provenance()


def test_reports_changed_hyper_parameters(new_model, tokenizers):
    before = contents(new_model)
    other = HPARAMS.replace(d_model=10, dropout=0.2, train_steps=7)
    with pytest.raises(UserError) as error:
        new_model.begin(other, provenance(tokenizers[0]), tokenizers[0])
    message = str(error.value)
    assert "d_model was 8, is now 10; dropout was 0.1, is now 0.2" in message
    assert "train_steps" not in message
    assert contents(new_model) == before


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"problem": "other"}, "problem was files, is now other"),
        ({"target_lang": "fr"}, "target language was de, is now fr"),
        (
            {"problem_fingerprint": "files:en-de:" + "1" * 64},
            "data was 0{24}, is now 1{24}",
        ),
    ],
)
def test_rejects_other_data(new_model, tokenizers, changes, words):
    with pytest.raises(UserError, match=words):
        new_model.begin(HPARAMS, provenance(tokenizers[0], **changes), tokenizers[0])


def test_rejects_another_vocabulary(new_model, tokenizers):
    before = contents(new_model)
    with pytest.raises(UserError, match=r"vocabulary was [0-9a-f]{24}, is now"):
        new_model.begin(HPARAMS, provenance(tokenizers[1]), tokenizers[1])
    assert contents(new_model) == before


def test_detects_a_replaced_vocabulary(new_model, tokenizers):
    tokenizers[1].save(new_model.path)
    with pytest.raises(UserError, match="not the vocabulary that this model"):
        new_model.tokenizer()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "7", '{"problem": "files"}', "\xff", '{"x": 1}']
)
def test_rejects_damaged_metadata(new_model, text):
    path = new_model.path / "model.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(UserError, match=r"model\.json is damaged"):
        new_model.provenance()


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000])
def test_a_damaged_result_counts_as_missing(new_model, text):
    new_model.result_file.write_text(text)
    assert new_model.result() is None


def test_rejects_metadata_of_wrong_types(new_model):
    path = new_model.path / "model.json"
    values = json.loads(path.read_text(encoding="utf-8")) | {"problem": 7}
    path.write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(UserError, match=r"model\.json is damaged"):
        new_model.provenance()


def test_rejects_damaged_hyper_parameters(new_model):
    (new_model.path / "hparams.yaml").write_text("d_model: [", encoding="utf-8")
    with pytest.raises(UserError, match=r"hparams\.yaml:1: not valid YAML"):
        new_model.hparams()


def test_rejects_a_folder_without_a_model(tmp_path):
    directory = ModelDir(tmp_path)
    for read in (directory.hparams, directory.provenance, directory.checkpoint):
        with pytest.raises(UserError, match="holds no model"):
            read()


def test_rejects_a_file_in_place_of_the_directory(tmp_path, tokenizers):
    (tmp_path / "m").write_text("x", encoding="utf-8")
    with pytest.raises(UserError, match=r"--model_dir .*File exists"):
        ModelDir(tmp_path / "m").begin(
            HPARAMS, provenance(tokenizers[0]), tokenizers[0]
        )


def test_initial_weights_depend_on_the_seed():
    first, again, other = (
        build_model(HPARAMS.replace(seed=seed), 20) for seed in (1, 1, 2)
    )
    for name, variable in named_variables(first).items():
        same, differs = (named_variables(m)[name].numpy() for m in (again, other))
        np.testing.assert_array_equal(variable.numpy(), same)
        # Scales and offsets start at 1 and 0.
        assert len(variable.shape) == 1 or np.abs(variable.numpy() - differs).max() > 0


def test_compares_the_number_of_micro_batches(new_model, tokenizers):
    metadata = provenance(tokenizers[0])
    # 25,000 tokens need seven micro-batches of up to 3,571 with both 4,096 and 4,000.
    new_model.check(HPARAMS.replace(max_tokens_per_device=4000), metadata)
    eight = HPARAMS.replace(max_tokens_per_device=3125)
    with pytest.raises(UserError, match="max_tokens_per_device was 4096, is now 3125"):
        new_model.check(eight, metadata)
    new_model.check(eight, metadata, {"max_tokens_per_device"})


def test_rejects_a_second_training_in_the_same_directory(new_model):
    with new_model.lock():
        again = ModelDir(new_model.path).lock()
        with pytest.raises(UserError, match="another process is training"), again:
            pass
    assert not (new_model.path / "training.lock").exists()
    with new_model.lock():
        pass


def test_rejects_another_machine_unless_it_has_died(new_model, monkeypatch):
    """Simulates machines that do not see each other's flock locks."""
    monkeypatch.setattr(locks, "BEAT_SECONDS", 0.2)
    monkeypatch.setattr(locks.fcntl, "flock", lambda *_: None)
    names, messages = iter(["here 1", "there 2", "there 2"]), []
    monkeypatch.setattr(model_dir, "this_machine", lambda: next(names))
    with (
        new_model.lock(messages.append),
        pytest.raises(UserError, match="another process is training"),
        ModelDir(new_model.path).lock(messages.append),
    ):
        pass
    assert len(messages) == 1
    (new_model.path / "training.lock").write_text("here 1")
    with new_model.lock(messages.append):
        assert messages[1].startswith(f"here has locked {new_model.path}; waiting ")


def test_accepts_changes_by_name(new_model, tokenizers):
    metadata = provenance(tokenizers[0], problem_fingerprint="files:en-de:" + "1" * 64)
    changed = HPARAMS.replace(dropout=0.3, warmup_steps=7)
    remedy = "or accept with --accept_changes dropout,warmup_steps"
    with pytest.raises(UserError, match=remedy):
        new_model.check(changed, metadata)
    with pytest.raises(UserError, match="warmup_steps was 4000, is now 7; use"):
        new_model.check(changed, metadata, {"dropout", "data"})
    with pytest.raises(
        UserError, match=r"data was 0{24}.*changes dropout,warmup_steps,data"
    ):
        new_model.check(changed, metadata, {"dropout", "warmup_steps"})
    accepted = {"dropout", "warmup_steps", "data"}
    new_model.begin(changed, metadata, tokenizers[0], accepted)
    assert (new_model.hparams(), new_model.provenance()) == (changed, metadata)
    # The accepted values are now those of the model directory.
    new_model.check(changed, metadata)


def test_other_data_keep_the_vocabulary(new_model):
    assert new_model.find_vocabulary({"dropout"}) is None
    assert new_model.find_vocabulary({"data"}) == new_model.path / "vocab.model"


def test_does_not_offer_changes_of_the_function(new_model, tokenizers):
    changed = HPARAMS.replace(d_ff=9, dropout=0.3)
    with pytest.raises(UserError, match=r"d_ff was 8, is now 9.*directory$"):
        new_model.check(changed, provenance(tokenizers[0]))


@pytest.mark.parametrize(
    "name",
    ["hparams.yaml", "checkpoints", "training_log.tsv", ".x.tmp", "checkpoints/a"],
)
def test_rejects_links_that_lead_out(new_model, tokenizers, tmp_path, name):
    """The directory may come from an untrusted archive."""
    outside = tmp_path / "precious"
    outside.write_text("mine", encoding="utf-8")
    path = new_model.path / name
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(outside)
    if name == "hparams.yaml":
        outside.write_text(HPARAMS.to_yaml(), encoding="utf-8")
    before = outside.read_bytes()
    with pytest.raises(UserError, match="is a link that leads out of --model_dir"):
        new_model.begin(HPARAMS, provenance(tokenizers[0]), tokenizers[0])
    assert outside.read_bytes() == before


def test_accepts_links_inside_and_to_the_directory(new_model, tokenizers, tmp_path):
    (new_model.path / "latest").symlink_to(new_model.path / "checkpoints")
    (tmp_path / "link").symlink_to(new_model.path)
    again = ModelDir(tmp_path / "link")
    again.begin(HPARAMS, provenance(tokenizers[0]), tokenizers[0])


def test_removes_incomplete_files_of_a_killed_process(new_model):
    names = (".hparams.yaml.77.tmp", ".vocab.model.x8s2", ".training_log.tsv.7.tmp")
    for name in (*names, ".mine"):
        (new_model.path / name).write_text("half")
    before = contents(new_model).keys() - {*names}
    with new_model.lock():
        assert contents(new_model).keys() - {"training.lock"} == before


def test_reports_all_changes_at_once(new_model, tokenizers):
    other = provenance(tokenizers[0], target_lang="fr")
    words = "dropout was .*; target language was de, .*changes dropout,target_lang$"
    with pytest.raises(UserError, match=words):
        new_model.check(HPARAMS.replace(dropout=0.3), other)


def test_a_refused_training_restores_the_settings(new_model, tokenizers):
    before = contents(new_model)
    for saves in (False, True):
        with pytest.raises(ZeroDivisionError), new_model.restore_on_error():
            changed = HPARAMS.replace(train_steps=7)
            new_model.begin(changed, provenance(tokenizers[0]), tokenizers[0])
            if saves:
                save(new_model, 1, 0.5)
            raise ZeroDivisionError
        assert (contents(new_model)["hparams.yaml"] == before["hparams.yaml"]) != saves


def test_a_training_refused_at_first_leaves_no_directory(tmp_path, tokenizers):
    directory = ModelDir(tmp_path / "new" / "runs" / "m")
    for notes in (False, True):
        with (
            pytest.raises(ZeroDivisionError),
            directory.lock(),
            directory.restore_on_error(),
        ):
            directory.begin(HPARAMS, provenance(tokenizers[0]), tokenizers[0])
            for name in ("training_log.tsv", *("notes.txt" for _ in range(notes))):
                (directory.path / name).write_text("text")
            (directory.path / "tensorboard").mkdir()
            raise ZeroDivisionError
        assert (tmp_path / "new").exists() == notes
    assert list(contents(directory)) == ["notes.txt"]
