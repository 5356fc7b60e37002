"""The command `visualize`: a sentence in, a page out."""

import json

import pytest

from tests import run_command

pytestmark = pytest.mark.medium

TEXT = "one two three"


def visualize(trained, *arguments):
    flags = ("--model_dir", str(trained.model_dir), *arguments)
    return run_command.run("visualize", *flags)


def test_it_writes_the_page_of_the_translators_own_translation(trained, tmp_path):
    output = tmp_path / "page.html"
    flags = ("--text", TEXT, "--output", str(output))
    done = visualize(trained, *flags, "--json")
    assert (done.status, done.err) == (0, "")
    found = json.loads(done.out)
    translated = run_command.run(
        "translate",
        *("--model_dir", str(trained.model_dir), "--scores"),
        stdin=f"{TEXT}\n".encode(),
    )
    score, translation = translated.out.rstrip("\n").split("\t")
    assert found["translation"] == found["shown"] == translation
    assert found["score"] == pytest.approx(float(score), abs=1e-5)
    assert found["checkpoint"] == str(trained.model_dir / "averaged")
    page = output.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert TEXT in page
    plain = visualize(trained, *flags, "--beam_size", "3", "--translation", "vier")
    assert plain.out.splitlines()[-1] == f"Page: {output}"
    assert "vier" in output.read_text(encoding="utf-8")


def test_live_writes_the_model_itself(trained, tmp_path):
    output = tmp_path / "live.html"
    flags = ("--live", "--text", TEXT, "--output", str(output), "--alpha", "0.5")
    done = visualize(trained, *flags)
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith(f"Page: {output} (")
    page = output.read_text(encoding="utf-8")
    assert f">{TEXT}</textarea>" in page
    assert '"alpha": 0.5' in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--text", " "], "--text is blank; give a sentence"),
        (["--text", "a\nb"], "--text holds a line break"),
        (["--text", "a\udcff"], "--text is not valid UTF-8"),
        (["--text", "a", "--translation", ""], "--translation is blank"),
        (["--text", "a", "--beam_size", "33"], "--beam_size 32 or less"),
        (["--text", "a", "--beam_size", "0"], "--beam_size: must be a whole number"),
        (["--text", "a", "--checkpoint", "absent"], "--checkpoint absent: no such"),
        (["--text", "a", "--output", "."], "--output . is a folder"),
        (["--text", "a", "--output", "absent/a.html"], "the folder absent does not"),
        (["--text", "a", "--model_dir", "absent"], "absent holds no model"),
        ([], "--text is missing; give a sentence, or --live"),
        (["--live", "--text", " "], "--text is blank; give a sentence"),
        (["--live", "--translation", "a"], "--translation cannot be combined with"),
        (["--live", "--output", "."], "--output . is a folder"),
    ],
)
def test_a_mistake_is_one_clear_line_and_nothing_is_written(
    trained, tmp_path, monkeypatch, arguments, words
):
    monkeypatch.chdir(tmp_path)
    done = visualize(trained, *arguments)
    assert run_command.is_one_clear_line(done)
    assert words in done.err
    assert list(tmp_path.iterdir()) == []
