"""Tests of the quickstart's report with a SavedModel of known outputs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools.echo import export_echo

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "quickstart_report.py"


@pytest.mark.medium
def test_report_has_the_score_and_the_translations_of_the_export(
    forked_python, tmp_path
):
    export_echo(tmp_path / "export" / "11")
    (tmp_path / "export" / "9").mkdir()  # Versions are compared as numbers.
    result = {"bleu": 96.5, "signature": "nrefs:1", "sentences": 2000}
    (tmp_path / "result.json").write_text(json.dumps(result), encoding="utf-8")
    report = tmp_path / "report.json"
    process = subprocess.run(
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
    assert process.returncode == 0, process.stderr
    written = json.loads(report.read_text(encoding="utf-8"))
    assert written["test_bleu"] == 96.5
    assert all(out == text.upper() for text, out in written["translations"].items())
    assert "BLEU on the test split: 96.50 (2,000 sentences; nrefs:1)" in process.stdout
    # Upper-case English is not German, so all translations are wrong.
    assert written["wrong"] == list(written["translations"])
    assert written["visitor_inputs_right"] == 0
    assert "  wrong: today is Friday -> TODAY IS FRIDAY" in process.stdout
