"""The package metadata in setup.cfg matches the directories."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import t2t_repro

ROOT = Path(__file__).resolve().parents[1]


def setup_cfg() -> configparser.ConfigParser:
    parsed = configparser.ConfigParser()
    parsed.read(ROOT / "setup.cfg", encoding="utf-8")
    return parsed


def test_setup_cfg_lists_all_packages():
    folders = {path.parent for path in (ROOT / "t2t_repro").rglob("*.py")}
    tree = {".".join(folder.relative_to(ROOT).parts) for folder in folders}
    listed = setup_cfg()["options"]["packages"].split()
    assert listed == sorted({*tree, "t2t_repro.configs"})


def test_every_folder_of_modules_is_a_package():
    folders = {path.parent for path in (ROOT / "t2t_repro").rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").exists()] == []


def test_package_data_includes_every_file_that_is_not_a_module():
    data = setup_cfg()["options.package_data"]
    for path in (ROOT / "t2t_repro").rglob("*"):
        if path.is_file() and path.suffix not in (".py", ".pyc"):
            package = next(f for f in path.parents if (f / "__init__.py").exists())
            patterns = data[".".join(package.relative_to(ROOT).parts)]
            name = path.relative_to(package)
            assert any(map(name.match, re.split(r"[,\s]+", patterns))), path


def test_package_data_includes_all_sets_and_the_typing_marker():
    data = setup_cfg()["options.package_data"]
    assert data["t2t_repro.configs"] == "*.yaml"
    assert "py.typed" in data["t2t_repro"].split()
    assert (ROOT / "t2t_repro" / "py.typed").exists()


def test_the_lock_file_satisfies_the_version_ranges():
    text = (ROOT / "tests" / "requirements.lock").read_text(encoding="utf-8")
    assert "://" not in text  # It works with every index.
    pins = dict(re.findall(r"^([\w.-]+)==([^ ]+) \\\n    --hash=sha256:", text, re.M))
    assert len(pins) == len(re.findall("^[^ #]", text, re.M)) > 150
    pinned = {canonicalize_name(name): version for name, version in pins.items()}
    parsed = setup_cfg()
    extras = parsed["options.extras_require"]
    groups = parsed["options"]["install_requires"], extras["test"], extras["docs"]
    for line in "\n".join(groups).split("\n"):
        if line and not line.startswith("#"):
            required = Requirement(line)
            version = pinned[canonicalize_name(required.name)]
            assert version in required.specifier, line


def test_pyproject_contains_only_the_build_backend():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert re.findall(r"^\[.*\]$", text, re.MULTILINE) == ["[build-system]"]


def test_version_is_defined_once():
    assert setup_cfg()["metadata"]["version"] == "attr: t2t_repro.__version__"
    assert re.fullmatch(r"\d+\.\d+\.\d+", t2t_repro.__version__)
