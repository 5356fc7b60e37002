"""Tests of the command `import_marian` with folders of Marian and Transformers."""

import json
import pickle
import shutil
import zipfile

import pytest

from t2t_repro.interop.ctranslate2 import write_ctranslate2
from t2t_repro.runs.checkpoints import list_checkpoints
from t2t_repro.runs.model_dir import ModelDir
from tests import run_command, tiny
from tests.interop.marian import vectors
from tests.interop.marian.small_marian import SmallMarian

CASES = {
    "marian": ("a_opus", "b_relu_labels", "c_gelu_separate", "d_prenorm_untied"),
    "transformers": ("a_opus", "b_relu_labels", "c_gelu_separate"),
}
PAIRS = [(program, case) for program, cases in CASES.items() for case in cases]
# Excludes blank lines, for which Marian and `translate` write empty lines, and two
# lines whose expected output is cut within a word.
LINES = sorted({*range(40)} - {18, 19, 21, 23})


def import_it(folder, model_dir, *flags):
    return run_command.run(
        "import_marian", "--folder", str(folder), "--model_dir", str(model_dir), *flags
    )


@pytest.fixture(scope="module")
def imported(shared_dir, tmp_path_factory):
    """Returns a function that imports a case, unless it has been imported before.

    The function returns the model directory and the result of the import command.
    """
    imports = {}

    def get(program, case):
        if (program, case) not in imports:
            model_dir = tmp_path_factory.mktemp("imported") / "model"
            folder = shared_dir / "marian" / case / program
            flags = ["--positions", program]
            imports[program, case] = model_dir, import_it(folder, model_dir, *flags)
        return imports[program, case]

    if not (shared_dir / "marian").is_dir():
        pytest.skip("the reference data of Marian are missing")
    return get


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Returns a folder with a small Marian model and its imported model directory."""
    path = tmp_path_factory.mktemp("small")
    result = import_it(SmallMarian().write(path / "marian"), path / "model")
    assert (result.status, result.err) == (0, "")
    return path


@pytest.mark.medium
@pytest.mark.parametrize(("program", "case"), PAIRS, ids=map("-".join, PAIRS))
def test_imports_every_folder_and_prints_a_report(imported, program, case):
    model_dir, result = imported(program, case)
    assert (result.status, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[0].startswith("imported ")
    assert lines[0].endswith(f" into {model_dir}")
    assert lines[-1].endswith("every array is used")
    assert ModelDir(model_dir).hparams().search == program


@pytest.mark.medium
@pytest.mark.parametrize(("program", "case"), PAIRS, ids=map("-".join, PAIRS))
def test_ids_equal_those_of_the_program(imported, shared_dir, program, case):
    model_dir, _ = imported(program, case)
    folder = shared_dir / "marian" / case
    expected = json.loads((folder / f"{program}.json").read_text(encoding="utf-8"))
    tokenizer = ModelDir(model_dir).tokenizer()
    for side, texts, ids in (
        (tokenizer, expected["sources"], expected["source_ids"]),
        (tokenizer.target, expected["targets"], expected["target_ids"]),
    ):
        encoded = side.encode(texts).to_list()
        # The mapping between the two numberings is one-to-one.
        pairs = {
            (mine, theirs)
            for number, (ours, other) in enumerate(zip(encoded, ids, strict=True))
            if program == "marian" or number != 37
            for mine, theirs in zip(ours, other, strict=True)
        }
        assert len({one for one, _ in pairs}) == len(pairs)
        assert len({one for _, one in pairs}) == len(pairs)


@pytest.mark.medium
@pytest.mark.parametrize("case", CASES["marian"][:3])
def test_translations_equal_marians_with_its_settings(
    imported, shared_dir, case, tmp_path
):
    """Without flags the settings in decoder.yml are used."""
    model_dir, _ = imported("marian", case)
    folder = shared_dir / "marian" / case
    expected = json.loads((folder / "marian.json").read_text(encoding="utf-8"))
    source = tmp_path / "source"
    source.write_text("".join(f"{expected['sources'][n]}\n" for n in LINES), "utf-8")
    flags = ["--model_dir", str(model_dir), "--input_file", str(source)]
    result = run_command.run(
        "translate", *flags, "--output_file", str(tmp_path / "output")
    )
    assert result.status == 0, result.err
    lines = (tmp_path / "output").read_text(encoding="utf-8").split("\n")[:-1]
    results = [expected["beam6_as_decoder_yml"][n] for n in LINES]
    texts = [
        line["text"] if isinstance(line["text"], str) else line["text"][0]
        for line in results
    ]
    assert lines == texts


@pytest.mark.medium
@pytest.mark.parametrize("case", CASES["marian"][:3])
def test_ctranslate2_gives_the_same_greedy_translations(
    imported, shared_dir, case, tmp_path
):
    ctranslate2 = pytest.importorskip("ctranslate2")
    model_dir, _ = imported("marian", case)
    directory, folder = ModelDir(model_dir), shared_dir / "marian" / case
    (checkpoint,) = list_checkpoints(directory.checkpoint_dir)
    tokenizer = directory.tokenizer()
    write_ctranslate2(directory.model(checkpoint), tokenizer, tmp_path)
    translator = ctranslate2.Translator(str(tmp_path), intra_threads=1)
    _, order = vectors.orders(folder / "marian", tokenizer)
    pieces_of = dict(zip(order, tokenizer.target.pieces[1:], strict=True))
    expected = json.loads((folder / "marian.json").read_text(encoding="utf-8"))
    for n in LINES:
        (ids,) = tokenizer.encode([expected["sources"][n]]).to_list()
        pieces = [tokenizer.pieces[number] for number in ids[:-1]]
        (output,) = translator.translate_batch([pieces], beam_size=1)
        (greedy,) = expected["greedy"][n]["ids"]
        assert output.hypotheses[0] == [pieces_of[number] for number in greedy[:-1]], n


@pytest.mark.slow
def test_training_continues_on_other_text(small, tmp_path):
    """Training with the imported vocabulary reduces the perplexity."""
    model_dir = tmp_path / "model"
    shutil.copytree(small / "model", model_dir)
    tiny.write_corpus(tmp_path / "data")
    hparams = f"{model_dir}/hparams.yaml,tokens_per_batch=256,max_length=32"
    hparams += ",learning_rate_scale=0.01,warmup_steps=10,dropout=0.0"
    files = [str(tmp_path / f"data/val.{side}") for side in ("en", "de")]

    def perplexity():
        flags = ("--source_file", files[0], "--target_file", files[1], "--json")
        result = run_command.run(
            "score", "--model_dir", str(model_dir), "--checkpoint", "latest", *flags
        )
        assert result.status == 0, result.err
        return json.loads(result.out.splitlines()[-1])["perplexity"]

    before = perplexity()
    result = run_command.run(
        "train",
        *("--hparams", hparams, "--problem", "files", "--train_steps", "40"),
        *("--data_dir", str(tmp_path / "data"), "--model_dir", str(model_dir)),
        *("--source_lang", "en", "--target_lang", "de"),
    )
    assert result.status == 0, result.err
    steps = list_checkpoints(ModelDir(model_dir).checkpoint_dir)
    assert max(checkpoint.step for checkpoint in steps) == 40
    assert "averaging the checkpoint of step 40\n" in result.out
    assert perplexity() < before


class _Runs:
    def __reduce__(self):
        return print, ("code in the file was run",)


def test_pickled_code_is_not_run(imported, shared_dir, tmp_path):
    """A `.bin` file that contains code is rejected, and the code is not run."""
    folder = tmp_path / "folder"
    shutil.copytree(shared_dir / "marian/b_relu_labels/transformers", folder)
    for path in (folder, *folder.iterdir()):
        path.chmod(0o755)
    weights = folder / "pytorch_model.bin"
    weights.unlink()
    with zipfile.ZipFile(weights, "w") as file:
        file.writestr("archive/data.pkl", pickle.dumps({"a": _Runs()}, protocol=2))
        file.writestr("archive/version", "3\n")
    result = import_it(folder, tmp_path / "model")
    assert (result.status, result.out) == (2, "")
    assert str(weights) in result.err
    assert result.err.count("\n") == 1
    weights.write_bytes(b"no zip")
    result = import_it(folder, tmp_path / "model")
    assert result.status == 2
    assert result.err.count("\n") == 1
    assert not (tmp_path / "model").exists()
