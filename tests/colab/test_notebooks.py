"""Notebooks match their sources, are stored without outputs, and run completely."""

import os
import re
import shutil
import sys
from pathlib import Path

import jupytext
import nbformat
import pytest
from golden_checks.t2t_variables import vocab_sizes
from nbclient import NotebookClient

import t2t_repro
from t2t_repro import hparams
from tests import forks, golden
from tests.interop.marian.small_marian import SmallMarian
from tests.interop.tensor2tensor.run import write_run
from tests.run_command import ROOT

FOLDER = ROOT / "colab"
# Number of images in the output of each notebook.
NOTEBOOKS = {
    "transformer_in_one_hour": 7,
    "train_on_your_own_text": 1,
    "reproduce_the_paper": 2,
    "serve_it": 0,
    "use_it_with_keras": 0,
    "bring_back_a_tensor2tensor_model": 0,
    "make_an_opus_mt_model_yours": 0,
    "adapt": 0,
    "find_the_fault": 3,
}
# On an idle machine, each cell takes up to half a minute, and the complete training of
# "find_the_fault" some minutes.
SECONDS_PER_CELL = 3600


def notebook(name):
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def code(name):
    cells = notebook(name).cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "code")


def test_all_notebooks_are_listed():
    names = {path.stem for path in FOLDER.glob("*.ipynb")}
    assert names == {path.stem for path in FOLDER.glob("*.py")} == NOTEBOOKS.keys()


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook_matches_its_source(name):
    source, generated = (
        [(cell.cell_type, cell.source) for cell in document.cells]
        for document in (jupytext.read(FOLDER / f"{name}.py"), notebook(name))
    )
    assert source == generated, f"run jupytext --update --to ipynb colab/{name}.py"


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook_has_no_outputs(name):
    document = notebook(name)
    nbformat.validate(document)
    cells = [cell for cell in document.cells if cell.cell_type == "code"]
    assert [cell.outputs for cell in cells] == [[]] * len(cells)
    assert {cell.execution_count for cell in cells} == {None}
    assert document.metadata.kernelspec.name == "python3"


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook_does_not_require_the_repository(name):
    assert re.findall(r"t2t_repro==([\d.]+)", code(name)) == [t2t_repro.__version__]
    assert not re.search(r"\b(tools|tests|configs)/|\.\./", code(name))


def test_quick_set_of_serve_it_is_valid():
    """The notebook does not train, because its test gives it a trained model."""
    lines = re.findall(r'^    SET \+?= "(.+)"$', code("serve_it"), re.MULTILINE)
    assert hparams.load("".join(lines)).train_steps == 60


def run(
    name,
    folder: Path,
    given: dict[str, Path] | None = None,
    *,
    forked: bool = True,
    **settings: str,
):
    """Runs a notebook in an empty folder, or one with copies of the `given` folders.

    Its kernel and its commands share one import of TensorFlow, unless it chooses
    Keras' backend (`forked=False`). Returns the printed output of its cells.
    """
    document = notebook(name)
    python = forks.python() if forked else sys.executable
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([os.fspath(Path(python).parent), os.environ["PATH"]]),
        "PYTHONPATH": str(ROOT),
        "IPYTHONDIR": str(folder / ".ipython"),
        "T2T_REPRO_QUICK": "1",
        **settings,
    }
    work = folder / "work"
    work.mkdir()
    for place, source in (given or {}).items():
        shutil.copytree(source, work / place)
    client = NotebookClient(
        document,
        timeout=SECONDS_PER_CELL,
        kernel_name="python3",
        # A variable cannot choose the backend: TensorFlow has imported matplotlib.
        extra_arguments=["--matplotlib=inline"],
        resources={"metadata": {"path": str(work)}},
    )
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "executable", python)
            client.execute(env=environment)
    finally:
        # With pytest --basetemp, the executed notebook can be inspected.
        nbformat.write(document, folder / f"{name}.ipynb")
    outputs = [out for cell in document.cells for out in cell.get("outputs", ())]
    pictures = [out for out in outputs if "image/png" in out.get("data", {})]
    assert len(pictures) == NOTEBOOKS[name]
    text = "".join(out.get("text", "") for out in outputs)
    # A failed command does not stop a notebook, so its output is checked.
    assert not re.search(r"^error: |^Traceback", text, re.MULTILINE), text
    return text


@pytest.fixture(scope="module")
def paper(tmp_path_factory):
    """Returns the folder and the output of the notebook "reproduce_the_paper"."""
    folder = tmp_path_factory.mktemp("paper")
    return folder / "work" / "paper", run("reproduce_the_paper", folder)


@pytest.mark.medium
def test_procedure_of_the_paper_runs(paper):
    _, text = paper
    assert "base, by hand:  63,062,016" in text
    assert "averaging the checkpoints of steps 12, 24, 36, 48, 60" in text
    assert len(re.findall(r"^BLEU \d+\.\d\d  nrefs:1", text, re.MULTILINE)) == 2


@pytest.mark.medium
def test_transformer_in_one_hour_runs(paper, tmp_path):
    """It uses the encoded corpus of the other notebook."""
    data = {"hour/data": paper[0] / "data"}
    text = run("transformer_in_one_hour", tmp_path, data)
    assert "output of the layer for a: [0.845 0.733 0.845 0.733]" in text
    assert "step 60/60" in text
    assert "Page: hour/transformer.html" in text


@pytest.mark.medium
def test_own_text_is_trained_scored_and_exported(tmp_path):
    text = run("train_on_your_own_text", tmp_path)
    assert "train: train.en and train.de, 800 lines" in text
    assert re.search(r"BLEU \d+\.\d\d  nrefs:1", text)
    assert {"exported.zip", "mymodel.zip"} <= {
        path.name for path in (tmp_path / "work").iterdir()
    }


@pytest.mark.medium
def test_export_is_served_to_three_clients(trained, tmp_path):
    text = run("serve_it", tmp_path, {"mymodel": trained.model_dir})
    assert "12 sentences in" in text
    assert "score: takes" in text
    assert "log_probability" in text


@pytest.mark.medium
def test_preset_is_fine_tuned_and_quantized_with_jax(trained, tmp_path):
    given = {"mymodel": trained.model_dir}
    text = run("use_it_with_keras", tmp_path, given, forked=False)
    # Two factors for the query and the value of each attention: one in a layer of the
    # encoder, two in a layer of the decoder.
    attentions = 3 * hparams.load(str(trained.model_dir / "hparams.yaml")).num_layers
    assert f"{2 * 2 * attentions} variables are trained" in text
    before, after = map(float, re.findall(r"(?:loss|epochs) (\d+\.\d+)", text))
    assert after < before
    sizes = [int(size.replace(",", "")) for size in re.findall(r"([\d,]+) bytes", text)]
    assert sizes[1] < sizes[0]


@pytest.mark.medium
def test_small_tensor2tensor_model_is_written_and_imported(tmp_path):
    text = run("bring_back_a_tensor2tensor_model", tmp_path)
    assert "symbol_modality_" in text
    assert "largest difference: 0.0" in text


@pytest.mark.medium
def test_model_of_tensor2tensor_is_imported(tmp_path, shared_dir):
    arrays = golden.load(shared_dir / "t2t" / "golden" / "v1_postnorm.npz")
    size, _ = vocab_sizes(golden.t2t_variables(arrays))
    files = write_run(tmp_path, arrays, size)
    text = run(
        "bring_back_a_tensor2tensor_model",
        tmp_path,
        T2T_CHECKPOINT=str(
            shared_dir / "t2t" / "golden" / "v1_postnorm_ckpt" / "model.ckpt-1000"
        ),
        T2T_HPARAMS_JSON=str(files.hparams_json),
        T2T_VOCAB_FILE=str(files.vocab_file),
    )
    assert "wrote an example model" not in text
    assert "largest difference: 0.0" in text


@pytest.mark.medium
def test_marian_model_is_imported_and_fine_tuned(tmp_path):
    """The perplexity of the example decreases."""
    model = SmallMarian().write(tmp_path / "marian")
    text = run("make_an_opus_mt_model_yours", tmp_path, MARIAN_FOLDER=str(model))
    assert "every array is used" in text
    before, after = map(float, re.findall(r"perplexity (?:per symbol )?([\d.]+)", text))
    assert after < before


@pytest.mark.medium
def test_general_model_is_adapted_and_guarded(trained, tmp_path):
    given = {"general": trained.model_dir, "general_text": trained.data_dir}
    text = run("adapt", tmp_path, given)
    assert len(re.findall(r"^BLEU, (?:validation|guard) ", text, re.MULTILINE)) == 4
    assert len(re.findall(r"^(?:plain|mixed) +guard ", text, re.MULTILINE)) == 2
    assert "step\tloss\tgreedy_bleu\tguard" in text


@pytest.mark.medium
def test_each_fault_is_found_by_its_check(tmp_path):
    text = run("find_the_fault", tmp_path)
    assert len(re.findall(r"^\w+ fails with the faults \[", text, re.MULTILINE)) == 12


@pytest.mark.slow
def test_each_fault_has_its_symptom(tmp_path):
    """The notebook trains completely; four faults at most are silent."""
    text = run("find_the_fault", tmp_path, T2T_REPRO_QUICK="0")
    assert len(re.findall(r"^\w+ fails with the faults \[", text, re.MULTILINE)) == 12
    symptoms = re.findall(r"^ *\d+ yes: (.+)", text, re.MULTILINE)
    assert len(symptoms) == 12
    assert symptoms.count("is silent") <= 4
