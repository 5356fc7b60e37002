"""Tests of `t2t_repro.load`, whose results equal those of the commands."""

import json

import pytest

import t2t_repro
from tests import run_command, tiny

SOURCES = [source for source, _ in tiny.pairs("test")]


@pytest.fixture(scope="module")
def model(trained):
    return t2t_repro.load(str(trained.model_dir))


def test_it_translates_as_the_command_does(trained, model, tmp_path):
    text, output = tmp_path / "text", tmp_path / "output"
    text.write_text("\n".join([*SOURCES, ""]), encoding="utf-8")
    flags = ("--model_dir", str(trained.model_dir), "--input_file", str(text))
    process = run_command.run("translate", *flags, "--output_file", str(output))
    assert process.status == 0, process
    assert model.translate(SOURCES) == output.read_text(encoding="utf-8").splitlines()
    assert model.translate(SOURCES[0], beam_size=1) == model.translate(
        SOURCES[:1], beam_size=1
    )
    assert model.translate(["", " "]) == ["", ""]


def test_it_scores_as_the_command_does(trained, model, tmp_path):
    targets = model.translate(SOURCES)
    for name, lines in (("source", SOURCES), ("target", targets)):
        text = "".join(f"{line}\n" for line in lines)
        (tmp_path / name).write_text(text, encoding="utf-8")
    flags = ("--source_file", tmp_path / "source", "--target_file", tmp_path / "target")
    words = ("--model_dir", str(trained.model_dir), *map(str, flags), "--json")
    process = run_command.run("score", *words)
    assert process.status == 0, process
    scores = model.score(zip(SOURCES, targets, strict=True))
    corpus = json.loads(process.out.splitlines()[-1])
    assert sum(scores) == pytest.approx(corpus["log_prob"], abs=1e-3)


def test_a_loaded_model_is_a_keras_model(trained):
    model = t2t_repro.load(trained.model_dir)
    assert isinstance(model.model, t2t_repro.Transformer)
    ids = model.tokenizer.encode([SOURCES[0]]).to_tensor()
    logits = model.model({"inputs": ids, "targets": ids})
    assert logits.shape == (*ids.shape, model.model.vocab_size)
    assert model.hparams.d_model == model.model.d_model


def test_rejects_a_folder_without_a_model(tmp_path):
    with pytest.raises(Exception, match=str(tmp_path)):
        t2t_repro.load(tmp_path)


def test_the_package_has_only_its_public_names():
    assert {"layers", "load"} <= set(dir(t2t_repro))
    with pytest.raises(AttributeError, match="no attribute 'rooms'"):
        _ = t2t_repro.rooms
