"""What CONTRIBUTING and the release checklist lean on is there."""

import configparser

import yaml

from t2t_repro.text_files import read_lines
from tests.command_line import ROOT

DOCS = ROOT / "docs"


def ruff_options(section):
    parsed = configparser.ConfigParser()
    parsed.read(ROOT / "setup.cfg", encoding="utf-8")
    return parsed["tool:ruff"][section].split()


def hooks():
    text = (DOCS / "pre-commit-config.yaml").read_text(encoding="utf-8")
    (repository,) = yaml.safe_load(text)["repos"]
    assert repository["repo"] == "local"  # Nothing is downloaded.
    return {hook["id"]: hook for hook in repository["hooks"]}


def test_a_commit_is_formatted_and_linted_as_the_test_command_does():
    found = hooks()
    assert found["format"]["args"] == ruff_options("common")
    options = [*ruff_options("common"), *ruff_options("check")]
    assert found["lint"]["args"] == options


def test_the_hooks_name_tests_that_exist():
    for path in hooks()["tree"]["args"]:
        assert (ROOT / path).exists()


def test_every_module_is_in_the_api_reference():
    pages = (DOCS / "reference" / "api").glob("*.rst")
    named = {
        line.removeprefix(".. room:: ").strip()
        for page in pages
        for line in read_lines(page)
        if line.startswith(".. room:: ")
    }
    tree = {
        path.stem if path.is_file() else path.name
        for path in (ROOT / "t2t_repro").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    programs = {
        path.stem
        for path in (ROOT / "t2t_repro").glob("*.py")
        if "\n\nif __name__ == " in path.read_text(encoding="utf-8")
    }
    # What the commands share has no use from outside.
    shared = {"__init__", "cli", *(name for name in tree if name.endswith("_flags"))}
    assert named == tree - programs - shared
