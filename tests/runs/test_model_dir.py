"""A model directory describes itself, and refuses to become another model."""

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
from tests.runs.directories import HPARAMS, provenance


def contents(directory):
    files = (path for path in directory.path.rglob("*") if path.is_file())
    return {path.name: path.read_bytes() for path in files}


def test_what_is_written_is_read_back(begun, tokenizers):
    again = ModelDir(begun.path)
    assert again.hparams() == HPARAMS
    assert again.provenance() == provenance(tokenizers[0])
    assert again.tokenizer().fingerprint == tokenizers[0].fingerprint
    assert sorted(contents(begun)) == ["hparams.yaml", "model.json", "vocab.model"]


def test_the_problem_is_found_again(tmp_path, tokenizers):
    data_dir = tiny.write_corpus(tmp_path / "data")
    directory = ModelDir(tmp_path / "m")
    told = provenance(tokenizers[0], data_dir=str(data_dir))
    directory.begin(HPARAMS, told, tokenizers[0])
    problem = directory.problem()
    assert isinstance(problem, FilesProblem)
    assert list(problem.pairs("test")) == tiny.pairs("test")


def test_the_same_training_may_go_on(begun, tokenizers):
    before = contents(begun)
    begun.begin(HPARAMS, provenance(tokenizers[0]), tokenizers[0])
    assert contents(begun) == before


def test_a_training_may_go_on_longer_and_decode_otherwise(begun, tokenizers):
    longer = HPARAMS.replace(train_steps=200_000, eval_steps=7, beam_size=1, alpha=1.0)
    begun.check(longer, provenance(tokenizers[0]))
    begun.begin(longer, provenance(tokenizers[0]), tokenizers[0])
    assert begun.hparams() == longer


@pytest.fixture
def imported(tmp_path, tokenizers):
    """The directory of a model whose data nobody knows."""
    directory = ModelDir(tmp_path / "imported")
    unknown = {"problem": None, "problem_fingerprint": None, "vocabulary_given": True}
    told = provenance(tokenizers[0], **unknown)
    directory.begin(HPARAMS, told, tokenizers[0])
    return directory


def test_an_imported_model_takes_the_first_data_that_it_is_given(imported, tokenizers):
    assert imported.given_vocabulary() == imported.path / "vocab.model"
    with pytest.raises(UserError, match=r"was imported, so its data are unknown"):
        imported.problem()
    told = provenance(tokenizers[0], vocabulary_given=True)
    imported.begin(HPARAMS, told, tokenizers[0])
    assert imported.provenance() == told
    other = provenance(tokenizers[0], problem_fingerprint="files:en-de:" + "1" * 64)
    with pytest.raises(UserError, match=r"data 0{24} there, 1{24} here"):
        imported.begin(HPARAMS, other, tokenizers[0])


def test_an_imported_model_may_learn_otherwise_but_not_become_another(
    imported, tokenizers
):
    otherwise = HPARAMS.replace(problem="other", dropout=0.3, warmup_steps=7)
    told = provenance(tokenizers[0], vocabulary_given=True)
    imported.check(otherwise, told)
    with pytest.raises(UserError, match="d_ff=8 there, 9 here; name"):
        imported.check(otherwise.replace(d_ff=9), told)
    french = provenance(tokenizers[0], target_lang="fr")
    with pytest.raises(UserError, match="target language de there, fr here"):
        imported.begin(HPARAMS, french, tokenizers[0])
    with pytest.raises(UserError, match="vocabulary "):
        imported.begin(HPARAMS, provenance(tokenizers[1]), tokenizers[1])


def test_a_vocabulary_that_was_built_is_not_given(begun, tmp_path):
    assert begun.given_vocabulary() is None
    assert ModelDir(tmp_path / "none").given_vocabulary() is None


@pytest.mark.parametrize("field", ["problem", "problem_fingerprint"])
def test_a_description_that_is_half_unknown_is_refused(begun, field):
    path = begun.path / "model.json"
    values = json.loads(path.read_text(encoding="utf-8")) | {field: None}
    path.write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(UserError, match=r"model\.json is damaged"):
        begun.provenance()


def test_other_hyper_parameters_are_refused_by_name(begun, tokenizers):
    before = contents(begun)
    other = HPARAMS.replace(d_model=10, dropout=0.2, train_steps=7)
    with pytest.raises(UserError) as refused:
        begun.begin(other, provenance(tokenizers[0]), tokenizers[0])
    message = str(refused.value)
    assert "d_model=8 there, 10 here; dropout=0.1 there, 0.2 here" in message
    assert "train_steps" not in message
    assert contents(begun) == before


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"problem": "other"}, "problem files there, other here"),
        ({"target_lang": "fr"}, "target language de there, fr here"),
        ({"problem_fingerprint": "files:en-de:" + "1" * 64}, "data 0{24} there, 1{24}"),
    ],
)
def test_other_data_are_refused(begun, tokenizers, changes, words):
    with pytest.raises(UserError, match=words):
        begun.begin(HPARAMS, provenance(tokenizers[0], **changes), tokenizers[0])


def test_another_vocabulary_is_refused_and_not_written(begun, tokenizers):
    before = contents(begun)
    with pytest.raises(UserError, match=r"vocabulary [0-9a-f]{24} there"):
        begun.begin(HPARAMS, provenance(tokenizers[1]), tokenizers[1])
    assert contents(begun) == before


def test_a_vocabulary_that_was_exchanged_is_noticed(begun, tokenizers):
    tokenizers[1].save(begun.path)
    with pytest.raises(UserError, match="not the vocabulary that this model"):
        begun.tokenizer()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "7", '{"problem": "files"}', "\xff", '{"x": 1}']
)
def test_a_damaged_description_is_refused(begun, text):
    path = begun.path / "model.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(UserError, match=r"model\.json is damaged"):
        begun.provenance()


def test_a_description_of_wrong_types_is_refused(begun):
    path = begun.path / "model.json"
    values = json.loads(path.read_text(encoding="utf-8")) | {"problem": 7}
    path.write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(UserError, match=r"model\.json is damaged"):
        begun.provenance()


def test_damaged_hyper_parameters_are_refused(begun):
    (begun.path / "hparams.yaml").write_text("d_model: [", encoding="utf-8")
    with pytest.raises(UserError, match=r"hparams\.yaml:1: not valid YAML"):
        begun.hparams()


def test_a_folder_without_a_model_is_refused(tmp_path):
    directory = ModelDir(tmp_path)
    for ask in (directory.hparams, directory.provenance, directory.checkpoint):
        with pytest.raises(UserError, match="holds no model"):
            ask()


def test_a_file_in_place_of_the_directory_is_refused(tmp_path, tokenizers):
    (tmp_path / "m").write_text("x", encoding="utf-8")
    with pytest.raises(UserError, match=r"--model_dir .*File exists"):
        ModelDir(tmp_path / "m").begin(
            HPARAMS, provenance(tokenizers[0]), tokenizers[0]
        )


def test_a_model_is_drawn_from_its_seed():
    first, again, other = (
        build_model(HPARAMS.replace(seed=seed), 20) for seed in (1, 1, 2)
    )
    for name, variable in named_variables(first).items():
        same, differs = (named_variables(m)[name].numpy() for m in (again, other))
        np.testing.assert_array_equal(variable.numpy(), same)
        # Scales and offsets start at 1 and 0.
        assert len(variable.shape) == 1 or np.abs(variable.numpy() - differs).max() > 0


def test_what_decides_the_parts_of_a_batch_is_compared(begun, tokenizers):
    told = provenance(tokenizers[0])
    # 25,000 in parts of 4,096 are seven of 3,571 at most; so they are in 4,000.
    begun.check(HPARAMS.replace(max_tokens_per_device=4000), told)
    eight = HPARAMS.replace(max_tokens_per_device=3125)
    with pytest.raises(UserError, match="max_tokens_per_device=4096 there, 3125 here"):
        begun.check(eight, told)
    begun.check(eight, told, {"max_tokens_per_device"})


def test_a_second_training_in_the_same_directory_is_refused(begun):
    directory = begun
    with directory.locked():
        again = ModelDir(directory.path).locked()
        with pytest.raises(UserError, match="another process trains in it"), again:
            pass
    assert not (directory.path / "training.lock").exists()
    with directory.locked():
        pass


def test_a_training_on_another_machine_is_refused_and_one_that_died_is_not(
    begun, monkeypatch
):
    """This machine's locks are not seen there."""
    monkeypatch.setattr(locks, "BEAT_SECONDS", 0.2)
    monkeypatch.setattr(locks.fcntl, "flock", lambda *_: None)
    names, said = iter(["here 1", "there 2", "there 2"]), []
    monkeypatch.setattr(model_dir, "this_machine", lambda: next(names))
    with (
        begun.locked(said.append),
        pytest.raises(UserError, match="another process trains in it"),
        ModelDir(begun.path).locked(said.append),
    ):
        pass
    assert len(said) == 1
    (begun.path / "training.lock").write_text("here 1")
    with begun.locked(said.append):
        assert said[1].startswith(f"here holds {begun.path}; looking for ")


def test_what_changed_can_be_accepted_by_name(begun, tokenizers):
    told = provenance(tokenizers[0], problem_fingerprint="files:en-de:" + "1" * 64)
    changed = HPARAMS.replace(dropout=0.3, warmup_steps=7)
    ways = "or go on all the same with --accept_changes dropout,warmup_steps"
    with pytest.raises(UserError, match=ways):
        begun.check(changed, told)
    with pytest.raises(UserError, match="warmup_steps=4000 there, 7 here; name"):
        begun.check(changed, told, {"dropout", "data"})
    with pytest.raises(UserError, match=r"data 0{24} there.*--accept_changes data"):
        begun.check(changed, told, {"dropout", "warmup_steps"})
    accepted = {"dropout", "warmup_steps", "data"}
    begun.begin(changed, told, tokenizers[0], accepted)
    assert (begun.hparams(), begun.provenance()) == (changed, told)
    # From now on it is a training of these.
    begun.check(changed, told)


def test_with_other_data_the_vocabulary_stays(begun):
    assert begun.given_vocabulary({"dropout"}) is None
    assert begun.given_vocabulary({"data"}) == begun.path / "vocab.model"


def test_what_makes_another_function_is_not_offered(begun, tokenizers):
    changed = HPARAMS.replace(d_ff=9, dropout=0.3)
    with pytest.raises(UserError, match=r"d_ff=8 there, 9 here.*directory$"):
        begun.check(changed, provenance(tokenizers[0]))


@pytest.mark.parametrize(
    "name",
    ["hparams.yaml", "checkpoints", "training_log.tsv", ".x.tmp", "checkpoints/a"],
)
def test_links_that_lead_out_are_refused(begun, tokenizers, tmp_path, name):
    """Of a directory that somebody else packed."""
    outside = tmp_path / "precious"
    outside.write_text("mine", encoding="utf-8")
    path = begun.path / name
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(outside)
    if name == "hparams.yaml":
        outside.write_text(HPARAMS.to_yaml(), encoding="utf-8")
    before = outside.read_bytes()
    with pytest.raises(UserError, match="is a link that leads out of --model_dir"):
        begun.begin(HPARAMS, provenance(tokenizers[0]), tokenizers[0])
    assert outside.read_bytes() == before


def test_links_inside_and_to_the_directory_are_welcome(begun, tokenizers, tmp_path):
    (begun.path / "latest").symlink_to(begun.path / "checkpoints")
    (tmp_path / "link").symlink_to(begun.path)
    again = ModelDir(tmp_path / "link")
    again.begin(HPARAMS, provenance(tokenizers[0]), tokenizers[0])


def test_what_a_killed_process_left_half_written_is_removed(begun):
    left = (".hparams.yaml.77.tmp", ".vocab.model.x8s2", ".training_log.tsv.7.tmp")
    for name in (*left, ".mine"):
        (begun.path / name).write_text("half")
    before = contents(begun).keys() - {*left}
    with begun.locked():
        assert contents(begun).keys() - {"training.lock"} == before
