"""Build of the documentation site: complete, without warnings or downloads."""

import os
import re
import subprocess

import pytest

from t2t_repro import hparams
from tests import forks
from tests.run_command import ROOT


def build(folder, output, *options):
    """Builds the site; `folder` caches parsed pages for the next build."""
    python = forks.python()
    built = [python, "-m", "sphinx", "-W", "--keep-going", "-q", *options]
    return subprocess.run(
        [*built, "-d", folder / "doctrees", ROOT / "docs", folder / output],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    result = build(folder, "html")
    assert result.returncode == 0, result.stderr
    return folder / "html"


@pytest.mark.medium
def test_all_pages_are_built(site):
    pages = {
        path.relative_to(ROOT / "docs").with_suffix(".html")
        for pattern in ("*.md", "*.rst")
        for path in (ROOT / "docs").rglob(pattern)
    }
    assert [page for page in pages if not (site / page).is_file()] == []


@pytest.mark.medium
def test_reference_is_generated_from_the_code(site):
    commands = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    for flag in ("--hparams", "--no_repeat_ngram", "--hparams_json", "--concurrency"):
        assert flag in commands
    table = (site / "reference" / "hyperparameters.html").read_text(encoding="utf-8")
    for name in hparams.HParams().to_dict():
        assert f">{name}<" in table
    sets = (site / "reference" / "configs.html").read_text(encoding="utf-8")
    for name in hparams.names():
        assert f'id="{name.replace("_", "-")}"' in sets
    api = (site / "reference" / "api" / "index.html").read_text(encoding="utf-8")
    for name in ("layers.MultiHeadAttention", "models.transformer.Transformer"):
        assert f'id="t2t_repro.{name}"' in api


@pytest.mark.medium
def test_pages_load_nothing_from_other_sites(site):
    remote = re.compile(r"<(?:script|img|link)\b[^>]*\b(?:src|href)=\"(?:https?:)?//")
    for page in site.rglob("*.html"):
        assert not remote.search(page.read_text(encoding="utf-8")), page
    for style in site.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        assert not re.search(r"url\([\"']?(?:https?:)?//|@import", text), style


LINK = '<a href="live.html">'


@pytest.mark.medium
def test_site_with_a_model_has_a_live_page_and_a_link_to_it(site, trained):
    result = build(site.parent, "live", "-D", f"live_model={trained.model_dir}")
    assert result.returncode == 0, result.stderr
    live = site.parent / "live"
    assert LINK in (live / "index.html").read_text(encoding="utf-8")
    page = (live / "live.html").read_text(encoding="utf-8")
    assert "window.transformer" in page
    assert '"weights": "' in page


@pytest.mark.medium
def test_site_without_a_model_has_no_link_to_a_live_page(site):
    assert not (site / "live.html").exists()
    for page in site.rglob("*.html"):
        assert "live.html" not in re.findall(r'href="([^"#]*)', page.read_text("utf-8"))


@pytest.mark.medium
def test_build_fails_if_the_model_does_not_exist(site):
    result = build(site.parent, "bad", "-D", "live_model=nothing")
    assert result.returncode != 0
    assert "live_model: " in result.stderr
    assert "nothing" in result.stderr
