"""Files that CONTRIBUTING and the release checklist refer to."""

import configparser

import yaml

import t2t_repro
from t2t_repro.system.atomic_file import read_lines
from tests.run_command import ROOT

DOCS = ROOT / "docs"


def ruff_options(section):
    parsed = configparser.ConfigParser()
    parsed.read(ROOT / "setup.cfg", encoding="utf-8")
    return parsed["tool:ruff"][section].split()


def hooks():
    text = (DOCS / "pre-commit-config.yaml").read_text(encoding="utf-8")
    (repository,) = yaml.safe_load(text)["repos"]
    assert repository["repo"] == "local"  # No hook is downloaded.
    return {hook["id"]: hook for hook in repository["hooks"]}


def test_hooks_use_the_options_of_the_test_command():
    by_id = hooks()
    assert by_id["format"]["args"] == ruff_options("common")
    options = [*ruff_options("common"), *ruff_options("check")]
    assert by_id["lint"]["args"] == options


def test_tests_of_the_hooks_exist():
    for path in hooks()["tree"]["args"]:
        assert (ROOT / path).exists()


def test_api_reference_contains_exactly_the_public_names():
    lines = read_lines(DOCS / "reference" / "api" / "index.rst")
    directive = ".. public_name:: "
    names = [line.removeprefix(directive) for line in lines if directive in line]
    assert sorted(names) == sorted(t2t_repro.__all__)
