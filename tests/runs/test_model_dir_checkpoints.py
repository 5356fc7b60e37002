"""Tests of selecting a model directory's checkpoint by name or folder."""

import numpy as np
import pytest

from t2t_repro.models.variables import named_variables
from t2t_repro.runs import checkpoint_rotation, checkpoints, tensor_file
from t2t_repro.runs.model_dir import build_model
from t2t_repro.system.errors import UserError
from tests.runs.directories import HPARAMS, provenance, save


def test_finds_checkpoints_by_name_and_folder(new_model):
    with pytest.raises(UserError, match="contains no checkpoint; train"):
        new_model.checkpoint()
    save(new_model, 5, 0.5)
    last = save(new_model, 10, 1.0)
    assert new_model.checkpoint() == new_model.checkpoint("latest") == last
    with pytest.raises(UserError, match=r"no averaged checkpoint.*t2t_repro\.average"):
        new_model.checkpoint("averaged")
    averaged = save(new_model, 10, 0.75, name="averaged")
    assert new_model.checkpoint() == new_model.checkpoint("averaged") == averaged
    assert new_model.checkpoint("latest") == last
    assert (
        new_model.checkpoint(str(new_model.checkpoint_dir / "step-00000005")).step == 5
    )


def test_the_default_is_not_an_average_of_earlier_data(new_model):
    save(new_model, 5, 0.5, data="A")
    averaged = save(new_model, 5, 0.5, name="averaged", data="A")
    assert new_model.checkpoint() == averaged
    latest = save(new_model, 10, 0.5, data="B")
    assert new_model.checkpoint() == latest
    averaged = save(new_model, 10, 0.5, name="averaged", data="B")
    assert new_model.checkpoint() == averaged


def test_checkpoints_of_earlier_versions_are_of_the_earlier_data(new_model, tokenizers):
    """They do not record their data; the model directory does."""
    save(new_model, 5, 0.5)
    averaged = save(new_model, 5, 0.5, name="averaged")
    new_model.begin(HPARAMS, provenance(tokenizers[0]), tokenizers[0])
    assert new_model.checkpoint() == averaged
    other = provenance(tokenizers[0], problem_fingerprint="files:en-de:1")
    new_model.begin(HPARAMS, other, tokenizers[0], {"data"})
    latest = save(new_model, 10, 0.5, data=other.data)
    assert new_model.checkpoint() == latest
    assert checkpoints.checkpoints_to_average(new_model.checkpoint_dir) == [latest]


@pytest.mark.parametrize("spec", ["averged", "step-00000005"])
def test_rejects_an_unknown_checkpoint(new_model, spec):
    with pytest.raises(UserError, match=f"checkpoint {spec}: no such folder"):
        new_model.checkpoint(spec)


def test_rejects_a_folder_without_a_checkpoint(new_model):
    with pytest.raises(UserError, match=r"is not a checkpoint: .* is missing"):
        new_model.checkpoint(str(new_model.path))


def test_rejects_a_damaged_average(new_model):
    save(new_model, 5, 0.5)
    averaged = save(new_model, 5, 0.5, name="averaged")
    (averaged.path / "checkpoint.json").unlink()
    with pytest.raises(UserError, match="averaged is not a checkpoint"):
        new_model.checkpoint()


def test_model_has_the_weights_of_its_checkpoint(new_model):
    model = new_model.model(save(new_model, 5, 0.25))
    for name, variable in named_variables(model).items():
        assert np.all(variable.numpy() == 0.25), name


def test_rejects_a_checkpoint_of_another_model(new_model):
    weights = {"embedding/table": np.zeros((300, 9), "float32")}
    other = checkpoints.save(new_model.checkpoint_dir, 5, weights)
    with pytest.raises(UserError, match="use the hyper-parameters and vocabulary"):
        new_model.model(other)


def test_finds_the_best_checkpoint_by_bleu(new_model):
    with pytest.raises(UserError, match="no checkpoint with the best validation BLEU"):
        new_model.checkpoint("best_bleu")
    variables = named_variables(build_model(HPARAMS, 300))
    for step, bleu in ((5, 20.0), (10, 30.0), (15, 25.0)):
        checkpoint_rotation.keep_best(new_model.best_dir, 2, step, variables, bleu)
    assert new_model.checkpoint("best_bleu").step == 10
    # The default checkpoint stays the latest.
    save(new_model, 15, 0.5)
    assert new_model.checkpoint().path == new_model.checkpoint_dir / "step-00000015"


def test_locks_the_checkpoint_while_reading_it(new_model, monkeypatch):
    """Prunes the checkpoints when the model reads its weights."""
    chosen = save(new_model, 5, 0.25)
    save(new_model, 10, 0.5)
    assign = tensor_file.TensorFile.assign

    def prune_and_assign(file, variables):
        checkpoint_rotation.prune(new_model.checkpoint_dir, keep=1)
        assign(file, variables)

    monkeypatch.setattr(tensor_file.TensorFile, "assign", prune_and_assign)
    for name, variable in named_variables(new_model.model(chosen)).items():
        assert np.all(variable.numpy() == 0.25), name
    assert chosen.path.exists()
