"""Tests of selecting a model directory's checkpoint by name or folder."""

import numpy as np
import pytest

from t2t_repro.models.variables import named_variables
from t2t_repro.runs import checkpoint_rotation, checkpoints
from t2t_repro.runs.model_dir import build_model
from t2t_repro.system.errors import UserError
from tests.runs.directories import HPARAMS, save


def test_finds_checkpoints_by_name_and_folder(begun):
    with pytest.raises(UserError, match="contains no checkpoint; train"):
        begun.checkpoint()
    save(begun, 5, 0.5)
    last = save(begun, 10, 1.0)
    assert begun.checkpoint() == begun.checkpoint("latest") == last
    with pytest.raises(UserError, match=r"no averaged checkpoint.*t2t_repro\.average"):
        begun.checkpoint("averaged")
    averaged = save(begun, 10, 0.75, name="averaged")
    assert begun.checkpoint() == begun.checkpoint("averaged") == averaged
    assert begun.checkpoint("latest") == last
    assert begun.checkpoint(str(begun.checkpoint_dir / "step-00000005")).step == 5


@pytest.mark.parametrize("spec", ["averged", "step-00000005"])
def test_rejects_an_unknown_checkpoint(begun, spec):
    with pytest.raises(UserError, match=f"--checkpoint {spec}: no such folder"):
        begun.checkpoint(spec)


def test_rejects_a_folder_without_a_checkpoint(begun):
    with pytest.raises(UserError, match=r"is not a checkpoint: .* is missing"):
        begun.checkpoint(str(begun.path))


def test_rejects_a_damaged_average(begun):
    save(begun, 5, 0.5)
    averaged = save(begun, 5, 0.5, name="averaged")
    (averaged.path / "checkpoint.json").unlink()
    with pytest.raises(UserError, match="averaged is not a checkpoint"):
        begun.checkpoint()


def test_model_has_the_weights_of_its_checkpoint(begun):
    model = begun.model(save(begun, 5, 0.25))
    for name, variable in named_variables(model).items():
        assert np.all(variable.numpy() == 0.25), name


def test_rejects_a_checkpoint_of_another_model(begun):
    weights = {"embedding/table": np.zeros((300, 9), "float32")}
    other = checkpoints.save(begun.checkpoint_dir, 5, weights)
    with pytest.raises(UserError, match="use the hyper-parameters and vocabulary"):
        begun.model(other)


def test_finds_the_best_checkpoint_by_bleu(begun):
    with pytest.raises(UserError, match="no checkpoint with the best validation BLEU"):
        begun.checkpoint("best_bleu")
    variables = named_variables(build_model(HPARAMS, 300))
    for step, bleu in ((5, 20.0), (10, 30.0), (15, 25.0)):
        checkpoint_rotation.keep_best(begun.best_dir, 2, step, variables, bleu)
    assert begun.checkpoint("best_bleu").step == 10
    # The default checkpoint stays the latest.
    save(begun, 15, 0.5)
    assert begun.checkpoint().path == begun.checkpoint_dir / "step-00000015"


def test_locks_the_checkpoint_while_reading_it(begun, monkeypatch):
    """Prunes the checkpoints when the model reads its weights."""
    chosen = save(begun, 5, 0.25)
    save(begun, 10, 0.5)
    assign = checkpoints.TensorFile.assign_to

    def prune_and_assign(file, variables):
        checkpoint_rotation.prune(begun.checkpoint_dir, keep=1)
        assign(file, variables)

    monkeypatch.setattr(checkpoints.TensorFile, "assign_to", prune_and_assign)
    for name, variable in named_variables(begun.model(chosen)).items():
        assert np.all(variable.numpy() == 0.25), name
    assert chosen.path.exists()
