"""The report of quickstart, made with a SavedModel that answers predictably."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "quickstart_report.py"


def export_an_echo(folder: Path) -> None:
    """Exports a model that translates by writing in capitals."""
    import tensorflow as tf

    class Echo(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
        def translate(self, text):
            scores = tf.zeros(tf.shape(text)[:1])
            return {"translations": tf.strings.upper(text), "scores": scores}

    echo = Echo()
    tf.saved_model.save(echo, str(folder), signatures=echo.translate)


def test_the_report_imports_nothing_of_the_package():
    imported = set()
    for node in ast.walk(ast.parse(SCRIPT.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module or "")
    assert not [name for name in imported if name.startswith("t2t_repro")]


@pytest.mark.medium
def test_the_report_holds_the_score_and_the_exports_own_translations(tmp_path):
    export_an_echo(tmp_path / "export" / "9")
    (tmp_path / "export" / "10").mkdir()  # The newest number wins, not the last name.
    (tmp_path / "export" / "9").rename(tmp_path / "export" / "11")
    result = {"bleu": 96.5, "signature": "nrefs:1", "sentences": 2000}
    (tmp_path / "result.json").write_text(json.dumps(result), encoding="utf-8")
    report = tmp_path / "report.json"
    done = subprocess.run(
        [
            *(sys.executable, str(SCRIPT), "--export_dir", str(tmp_path / "export")),
            *("--result", str(tmp_path / "result.json"), "--train_seconds", "300"),
            *("--seconds", "310", "--reused", "model", "--report", str(report)),
        ],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    written = json.loads(report.read_text(encoding="utf-8"))
    assert written["test_bleu"] == 96.5
    assert (written["signature"], written["sentences"]) == ("nrefs:1", 2000)
    assert written["seconds"] >= 310
    assert written["reused"] == ["model"]
    assert all(out == text.upper() for text, out in written["translations"].items())
    assert "BLEU on the test split: 96.50 (2,000 sentences; nrefs:1)" in done.stdout
    # Capitals are not German: every translation is wrong.
    assert written["wrong"] == list(written["translations"])
    assert done.stdout.count("wrong: it should be ") == len(written["wrong"]) >= 5
    assert written["visitor_inputs"] >= 60
    assert written["visitor_inputs_right"] == 0
    assert written["visitor_inputs_wrong"]["today is Friday"] == "TODAY IS FRIDAY"
    assert f"0 of {written['visitor_inputs']} right" in done.stdout
    assert "  wrong: today is Friday -> TODAY IS FRIDAY" in done.stdout
