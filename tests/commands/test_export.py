"""Tests of the command `export`."""

import json
import re
import shutil

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from t2t_repro.fast import int8_matmul
from t2t_repro.translation.loading import load_models
from tests import run_command, tiny
from tests.sixteen_bits import needs

pytestmark = pytest.mark.medium

LINES = [source for source, _ in tiny.pairs("test")]


def export(trained, folder, *arguments):
    flags = ("--model_dir", str(trained.model_dir), "--export_dir", str(folder))
    return run_command.run("export", *flags, *arguments)


@pytest.fixture(scope="module")
def signatures(exported):
    """Returns the signatures of the exported model."""
    return tf.saved_model.load(str(exported[0] / "1")).signatures


def test_result_names_the_checkpoint_the_version_and_the_model(trained, exported):
    folder, result = exported
    assert result == {
        "checkpoint": str(trained.model_dir / "averaged"),
        "saved_model": str(folder / "1"),
        "model_name": "model",
        "kept_files": [],
    }


def graphs(version):
    """Returns the nodes of each function of an export, without serial numbers."""
    saved = saved_model_pb2.SavedModel()
    saved.ParseFromString((version / "saved_model.pb").read_bytes())
    (meta,) = saved.meta_graphs
    functions = [f.node_def for f in meta.graph_def.library.function]
    return sorted(
        sorted(re.sub(r"((_|Gradient-)\d+)+\b", "", str(node)) for node in nodes)
        for nodes in (meta.graph_def.node, *functions)
    )


@pytest.mark.usefixtures("fake_gpu")
def test_a_second_export_on_a_gpu_is_the_next_version_with_the_same_graphs(
    trained, exported, tmp_path
):
    folder = tmp_path / "exported"
    shutil.copytree(exported[0], folder)
    completed = export(trained, folder, "--json")
    assert completed.status == 0, completed.err
    assert json.loads(completed.out)["saved_model"] == str(folder / "2")
    assert len(json.loads(completed.out)["kept_files"]) == 3
    assert graphs(folder / "2") == graphs(exported[0] / "1")
    completed = export(trained, folder, "--model_name", "other")
    assert run_command.is_one_clear_line(completed)
    assert "does not name the model other" in completed.err
    assert not (folder / "3").exists()


def test_server_files_name_the_model(exported):
    folder, _ = exported
    names = {path.name for path in folder.iterdir()}
    files = {"models.config", "batching_parameters.txt", "compose.yaml"}
    assert names == {"1", *files}
    assert 'name: "model"' in (folder / "models.config").read_text()


def test_the_card_describes_the_model(trained, exported):
    folder, _ = exported
    card = (folder / "1/assets.extra/README.md").read_text(encoding="utf-8")
    result = json.loads((trained.model_dir / "result.json").read_text())
    provenance = json.loads((trained.model_dir / "model.json").read_text())
    for part in (
        "translates en into de",
        f"On {result['split']}, beam size 2, alpha 0.6.",
        f"BLEU {result['bleu']:.2f}  {result['signature']}\n",
        "the average of steps 2, 4",
        provenance["vocabulary_fingerprint"],
        provenance["problem_fingerprint"],
        "first 512 subwords",
        f"| tensorflow | {tf.__version__} |",
        "CC0-1.0. The program",
        "d_model: 16\n",
        "beam_size: 2\n",
    ):
        assert part in card, part


@pytest.mark.medium
@needs("bfloat16")
def test_bfloat16_halves_the_weights_and_keeps_the_scores(
    trained, exported, signatures, tmp_path
):
    completed = export(trained, tmp_path / "e", "--precision", "bfloat16")
    assert completed.status == 0, completed.err
    data = "variables/variables.data-00000-of-00001"
    whole = (exported[0] / "1" / data).stat().st_size
    assert (tmp_path / "e/1" / data).stat().st_size < 0.6 * whole
    texts = tf.constant(LINES)
    halved = tf.saved_model.load(str(tmp_path / "e/1")).signatures
    log_probs = [
        each["score"](text=texts, translation=texts)["log_probability"].numpy()
        for each in (signatures, halved)
    ]
    np.testing.assert_allclose(log_probs[1], log_probs[0], rtol=0.02)
    card = (tmp_path / "e/1/assets.extra/README.md").read_text(encoding="utf-8")
    assert "parameters, bfloat16" in card


@pytest.mark.usefixtures("fake_gpu")
def test_any_machine_exports_7_bit_weights_of_a_later_average_without_a_score(
    trained_copy, tmp_path, monkeypatch
):
    model_dir = str(trained_copy.model_dir)
    run_command.run("average", "--model_dir", model_dir, "--last", "1")
    # A GPU cannot compute int8 matmuls.
    monkeypatch.setattr(int8_matmul, "exact_weight_bits", pytest.fail)
    flags = ("--precision", "int8", "--int8_weights", "7", "--input", "ids")
    completed = export(trained_copy, tmp_path / "e", *flags)
    assert completed.status == 0, completed.err
    card = (tmp_path / "e/1/assets.extra/README.md").read_text(encoding="utf-8")
    parameters = load_models(model_dir).models[0].count_params()
    assert f" {parameters:,} parameters, int8 with 7-bit weights." in card
    assert "These weights were not scored after training." in card
    weights = tf.train.load_checkpoint(str(tmp_path / "e/1/variables/variables"))
    matrix = weights.get_tensor("matrices/0/.ATTRIBUTES/VARIABLE_VALUE")
    assert np.abs(matrix.view(np.int8)).max(axis=1).tolist() == [64] * len(matrix)
