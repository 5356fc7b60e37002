"""What CONTRIBUTING and the release checklist lean on is there."""

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


def test_the_api_reference_holds_what_people_use_and_nothing_internal():
    lines = read_lines(DOCS / "reference" / "api" / "index.rst")
    named = [line.removeprefix(".. offered:: ") for line in lines if "::" in line]
    assert sorted(named) == sorted(t2t_repro.__all__)
