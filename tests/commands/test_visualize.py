"""Tests of the command `visualize`."""

import json

import pytest

from tests import run_command

pytestmark = pytest.mark.medium

TEXT = "one two three"


def visualize(trained, *arguments):
    flags = ("--model_dir", str(trained.model_dir), *arguments)
    return run_command.run("visualize", *flags)


def test_writes_a_page_of_the_models_translation(trained, tmp_path):
    output = tmp_path / "page.html"
    flags = ("--text", TEXT, "--output", str(output))
    result = visualize(trained, *flags, "--json")
    assert (result.status, result.err) == (0, "")
    values = json.loads(result.out)
    translated = run_command.run(
        "translate",
        *("--model_dir", str(trained.model_dir), "--scores"),
        stdin=f"{TEXT}\n".encode(),
    )
    score, translation = translated.out.rstrip("\n").split("\t")
    assert values["translation"] == values["shown"] == translation
    assert values["score"] == pytest.approx(float(score), abs=1e-5)
    assert values["checkpoint"] == str(trained.model_dir / "averaged")
    page = output.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert TEXT in page
    plain = visualize(trained, *flags, "--beam_size", "3", "--translation", "vier")
    assert plain.out.splitlines()[-1] == f"Page: {output}"
    assert "vier" in output.read_text(encoding="utf-8")


def test_live_writes_a_page_with_the_model(trained, tmp_path):
    output = tmp_path / "live.html"
    texts = ("--text", TEXT, "--text", "four")
    flags = ("--live", *texts, "--output", str(output), "--alpha", "0.5")
    result = visualize(trained, *flags)
    assert (result.status, result.err) == (0, "")
    assert result.out.startswith(f"Page: {output} (")
    page = output.read_text(encoding="utf-8")
    assert f">{TEXT}</textarea>" in page
    assert "(averaged)" not in page
    assert ">four</button>" in page
    assert '"alpha": 0.5' in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")
