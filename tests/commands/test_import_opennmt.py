"""Tests of the command `import_opennmt` with checkpoints and SavedModels."""

import json
import shutil

import pytest
import tensorflow as tf

from t2t_repro.interop.ctranslate2 import write_ctranslate2
from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.serving.exports.export_format import ExportOptions
from t2t_repro.serving.model_card import model_card
from t2t_repro.serving.saved_model import write_saved_model
from t2t_repro.serving.signatures import ServingModule
from t2t_repro.translation.loading import load_models
from tests import run_command
from tests.interop.opennmt.vectors import CASES, arrays_of, write_files


def import_it(checkpoint, model_dir, *flags):
    return run_command.run(
        "import_opennmt",
        *("--checkpoint", str(checkpoint), "--model_dir", str(model_dir)),
        *flags,
    )


def translated(model_dir, folder, *flags):
    source, output = folder / "source.txt", folder / "output.txt"
    output.unlink(missing_ok=True)
    texts = arrays_of("base")["sources"].tolist()
    source.write_text("".join(f"{text}\n" for text in texts))
    result = run_command.run(
        "translate",
        *("--model_dir", str(model_dir), "--input_file", str(source)),
        *("--output_file", str(output)),
        *flags,
    )
    assert result.status == 0, result.err
    return output.read_text(encoding="utf-8").split("\n")[:-1]


@pytest.fixture(scope="module", params=CASES)
def imported(request, tmp_path_factory):
    """Returns a case and its imported model directory."""
    path = tmp_path_factory.mktemp("opennmt")
    write_files(request.param, path / "run")
    config = str(path / "run" / "data.yml")
    result = import_it(path / "run", path / "model", "--config", config)
    assert (result.status, result.err) == (0, "")
    lines = result.out.splitlines()
    assert (
        lines[0] == f"imported {path / 'run' / 'ckpt-3'} (OpenNMT-tf) into {path}/model"
    )
    assert lines[-1] == "languages: en to de; every array is used"
    return request.param, path / "model"


@pytest.fixture(scope="module")
def translations(imported, tmp_path_factory):
    return translated(imported[1], tmp_path_factory.mktemp("translations"))


@pytest.mark.medium
def test_translations_equal_those_of_opennmt(imported, translations):
    case, model_dir = imported
    tokenizer = ModelDir(model_dir).tokenizer().target
    (path,) = (model_dir.parent / "run").glob("*target.vocab")
    pieces = [*path.read_text(encoding="utf-8").split("\n")[:-1], "<unk>"]
    ours = [tokenizer.pieces.index(piece) for piece in pieces]
    ids = arrays_of(case)["ids/beam4_0.6"][:, 0]
    expected = tokenizer.decode([[ours[n] for n in row] for row in ids.tolist()])
    assert translations == [text.decode() for text in expected.numpy()]


# `test_imports_a_saved_model_of_this_program` imports an export with post-norm and
# encoded positions.
@pytest.mark.medium
@pytest.mark.parametrize(
    "imported",
    [pytest.param("base", marks=pytest.mark.slow), "relative"],
    indirect=True,
)
def test_an_export_can_be_imported(imported, translations, tmp_path):
    _, model_dir = imported
    loaded = load_models(model_dir)
    card = model_card(loaded, loaded.search(), ExportOptions(), 512)
    module = ServingModule(loaded.models, loaded.tokenizer, loaded.search())
    # The other signatures would take most of the time.
    module.functions = {"serving_default": module.functions["serving_default"]}
    write_saved_model(module, tmp_path / "out" / "1", model_card=card)
    (vocabulary,) = model_dir.glob("*.marian")
    flags = ("--vocab_file", str(vocabulary))
    result = import_it(tmp_path / "out" / "1", tmp_path / "again", *flags)
    assert (result.status, result.err) == (0, "")
    assert translated(tmp_path / "again", tmp_path) == translations
    result = import_it(tmp_path / "out" / "1", tmp_path / "more")
    assert result.status == 2
    assert f"give --vocab_file, the file {vocabulary.name}" in result.err
    card = tmp_path / "out" / "1" / "assets.extra" / "README.md"
    text = card.read_text(encoding="utf-8")
    int8 = "int8 with 7-bit weights"
    card.write_text(text.replace(" parameters, float32.", f" parameters, {int8}."))
    result = import_it(tmp_path / "out" / "1", tmp_path / "more", *flags)
    assert result.status == 2
    assert f"is an export in {int8}, which cannot be imported" in result.err
    card.write_text("# Nothing\n")
    result = import_it(tmp_path / "out" / "1", tmp_path / "more", *flags)
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert not (tmp_path / "more").exists()


@pytest.mark.medium
def test_ctranslate2_translates_the_same_or_names_a_missing_feature(imported, tmp_path):
    case, model_dir = imported
    if case == "relative":
        result = run_command.run(
            *("export", "--model_dir", str(model_dir), "--format", "ctranslate2"),
            *("--export_dir", str(tmp_path / "out")),
        )
        assert (result.status, result.err.count("\n")) == (2, 1)
        assert "max_relative_position=3" in result.err
        return
    ctranslate2 = pytest.importorskip("ctranslate2")
    directory = ModelDir(model_dir)
    tokenizer = directory.tokenizer()
    model = directory.model(directory.checkpoint())
    write_ctranslate2(model, tokenizer, tmp_path)
    translator = ctranslate2.Translator(str(tmp_path), intra_threads=1)
    texts = arrays_of(case)["sources"].tolist()
    pieces = [
        [tokenizer.pieces[n] for n in row[:-1]]
        for row in tokenizer.encode(texts).to_list()
    ]
    translations = translator.translate_batch(
        pieces, beam_size=1, max_decoding_length=12, min_decoding_length=0
    )
    names = tokenizer.target.pieces
    numbers = [
        [names.index(piece) for piece in one.hypotheses[0]] for one in translations
    ]
    ended = tf.ragged.constant([[*row, 1] for row in numbers], tf.int32)
    texts = [text.decode() for text in tokenizer.target.decode(ended).numpy()]
    assert texts == translated(model_dir, tmp_path, "--beam_size", "1")


@pytest.mark.medium
def test_imports_a_saved_model_of_this_program(trained, exported, tmp_path):
    result = import_it(exported[0] / "1", tmp_path / "again")
    assert (result.status, result.err) == (0, "")
    expected = translated(trained.model_dir, tmp_path)
    assert translated(tmp_path / "again", tmp_path) == expected


def test_json_contains_the_report(tmp_path):
    run = write_files("post", tmp_path / "run")
    flags = ("--config", str(run / "data.yml"), "--json")
    result = import_it(run / "ckpt-3", tmp_path / "model", *flags)
    report = json.loads(result.out.splitlines()[-1])
    assert report["program"] == "OpenNMT-tf"
    assert report["hparams"]["norm"] == "post"
    shutil.rmtree(tmp_path / "model")
    result = import_it(run, tmp_path / "model")
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert "needs --config" in result.err
