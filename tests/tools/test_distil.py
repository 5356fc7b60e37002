"""A student that learns from a teacher's translations."""

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
def test_a_student_learns_what_the_teacher_translates(trained, tmp_path):
    asked = flags(trained, tmp_path, f"{trained.hparams},num_layers=2")
    asked[-1] += ",num_decoder_layers=1"
    done = run_command.run_alone(TOOL, *asked, "--json")
    assert done.status == 0, done.err
    assert json.loads(done.out)["steps"] == 4
    text = tmp_path / "text"
    sources = "".join(f"{source}\n" for source, _ in tiny.pairs("train"))
    assert (text / "train.en").read_text(encoding="utf-8") == sources
    for split in ("val", "test"):
        references = "".join(f"{target}\n" for _, target in tiny.pairs(split))
        assert (text / f"{split}.de").read_text(encoding="utf-8") == references
    said = run_command.run(
        *("translate", "--model_dir", str(trained.model_dir)), stdin=sources.encode()
    )
    assert (text / "train.de").read_text(encoding="utf-8") == said.out
    student, teacher = tmp_path / "student", trained.model_dir
    name = "vocab.model"
    assert (student / name).read_bytes() == (teacher / name).read_bytes()
    # Again: the text is used as it is, and the training is at its end.
    before = (text / "train.de").stat().st_mtime_ns
    again = run_command.run_alone(TOOL, *asked, "--json")
    assert again.status == 0, again.err
    assert "does not translate again" in again.err
    assert (text / "train.de").stat().st_mtime_ns == before


def test_the_teachers_own_text_is_not_written_over(trained, tmp_path):
    asked = flags(trained, tmp_path, trained.hparams)
    asked[3] = str(trained.data_dir)
    done = run_command.run(TOOL, *asked)
    assert run_command.is_one_clear_line(done)
    assert "holds the teacher's text; name another" in done.err


def test_a_teacher_that_is_not_there_is_one_clear_line(trained, tmp_path):
    asked = flags(trained, tmp_path, trained.hparams)
    asked[1] = str(tmp_path / "nobody")
    done = run_command.run(TOOL, *asked)
    assert run_command.is_one_clear_line(done)
    assert not (tmp_path / "text").exists()
