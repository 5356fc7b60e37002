"""Tests of sequence-level knowledge distillation."""

import json

import pytest

from tests import run_command, tiny

TOOL = "tools/distil.py"


def flags(trained, folder, hparams):
    return [
        *("--teacher", str(trained.model_dir), "--data_dir", str(folder / "text")),
        *("--model_dir", str(folder / "student"), "--hparams", str(hparams)),
    ]


@pytest.mark.medium
def test_trains_the_student_on_the_teachers_translations(
    forked_python, trained, tmp_path
):
    arguments = flags(trained, tmp_path, f"{trained.hparams},num_layers=2")
    # The warm-up is longer, so that the student is not scored.
    arguments[-1] += ",num_decoder_layers=1,warmup_steps=9"
    first = run_command.run_alone(TOOL, *arguments, "--json")
    assert first.status == 0, first.err
    assert json.loads(first.out)["steps"] == 4
    text = tmp_path / "text"
    sources = "".join(f"{source}\n" for source, _ in tiny.pairs("train"))
    assert (text / "train.en").read_text(encoding="utf-8") == sources
    for split in ("val", "test"):
        references = "".join(f"{target}\n" for _, target in tiny.pairs(split))
        assert (text / f"{split}.de").read_text(encoding="utf-8") == references
    translated = run_command.run(
        *("translate", "--model_dir", str(trained.model_dir)), stdin=sources.encode()
    )
    assert (text / "train.de").read_text(encoding="utf-8") == translated.out
    student, teacher = tmp_path / "student", trained.model_dir
    name = "vocab.model"
    assert (student / name).read_bytes() == (teacher / name).read_bytes()
    # A second run reuses the translations and the trained student.
    before = (text / "train.de").stat().st_mtime_ns
    again = run_command.run(TOOL, *arguments, "--json")
    assert again.status == 0, again.err
    assert "reusing the translations" in again.err
    assert (text / "train.de").stat().st_mtime_ns == before


def test_does_not_overwrite_the_teachers_data(trained, tmp_path):
    arguments = flags(trained, tmp_path, trained.hparams)
    arguments[3] = str(trained.data_dir)
    result = run_command.run(TOOL, *arguments)
    assert run_command.is_one_clear_line(result)
    assert "has the teacher's data; give another folder" in result.err


def test_rejects_an_absent_teacher(trained, tmp_path):
    arguments = flags(trained, tmp_path, trained.hparams)
    arguments[1] = str(tmp_path / "absent")
    result = run_command.run(TOOL, *arguments)
    assert run_command.is_one_clear_line(result)
    assert not (tmp_path / "text").exists()
