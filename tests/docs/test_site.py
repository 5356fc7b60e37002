"""The site is built without a warning, from what is there, and fetches nothing."""

import os
import re
import subprocess
import sys

import pytest

from t2t_repro import hparams
from tests.run_command import ROOT


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    built = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q"]
    done = subprocess.run(
        [*built, "-d", folder / "doctrees", ROOT / "docs", folder / "html"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder / "html"


@pytest.mark.medium
def test_every_page_is_there(site):
    pages = {
        path.relative_to(ROOT / "docs").with_suffix(".html")
        for pattern in ("*.md", "*.rst")
        for path in (ROOT / "docs").rglob(pattern)
    }
    assert [page for page in pages if not (site / page).is_file()] == []


@pytest.mark.medium
def test_the_reference_is_written_from_the_code(site):
    commands = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    for flag in ("--hparams", "--no_repeat_ngram", "--hparams_json", "--concurrency"):
        assert flag in commands
    table = (site / "reference" / "hyperparameters.html").read_text(encoding="utf-8")
    for name in hparams.HParams().to_dict():
        assert f">{name}<" in table
    sets = (site / "reference" / "configs.html").read_text(encoding="utf-8")
    for name in hparams.names():
        assert f'id="{name.replace("_", "-")}"' in sets
    offered = (site / "reference" / "api" / "index.html").read_text(encoding="utf-8")
    for name in ("layers.MultiHeadAttention", "models.transformer.Transformer"):
        assert f'id="t2t_repro.{name}"' in offered


@pytest.mark.medium
def test_a_reader_fetches_nothing_from_elsewhere(site):
    fetched = re.compile(r"<(?:script|img|link)\b[^>]*\b(?:src|href)=\"(?:https?:)?//")
    for page in site.rglob("*.html"):
        assert not fetched.search(page.read_text(encoding="utf-8")), page
    for style in site.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        assert not re.search(r"url\([\"']?(?:https?:)?//|@import", text), style
