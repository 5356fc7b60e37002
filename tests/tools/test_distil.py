"""Tests of sequence-level knowledge distillation."""

import json

import pytest

from tests import run_command, tiny

TOOL = "tools/distil.py"


@pytest.mark.medium
def test_trains_the_student_on_the_teachers_translations(
    forked_python, trained, tmp_path
):
    # The warm-up is longer, so that the student is not scored.
    hparams = f"{trained.hparams},num_decoder_layers=1,warmup_steps=9"
    first = run_command.run_alone(
        *(TOOL, "--teacher", str(trained.model_dir), "--hparams", hparams),
        *("--data_dir", str(tmp_path / "text"), "--json"),
        *("--model_dir", str(tmp_path / "student")),
    )
    assert first.status == 0, first.err
    assert json.loads(first.out)["steps"] == 4
    text = tmp_path / "text"
    sources = "".join(f"{source}\n" for source, _ in tiny.pairs("train"))
    references = "".join(f"{target}\n" for _, target in tiny.pairs("val"))
    assert (text / "val.de").read_text(encoding="utf-8") == references
    translated = run_command.run(
        *("translate", "--model_dir", str(trained.model_dir)), stdin=sources.encode()
    )
    assert (text / "train.de").read_text(encoding="utf-8") == translated.out
    student, teacher = tmp_path / "student", trained.model_dir
    name = "vocab.model"
    assert (student / name).read_bytes() == (teacher / name).read_bytes()
