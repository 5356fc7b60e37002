"""What setup.cfg promises about the package agrees with the tree."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

import t2t_repro

ROOT = Path(__file__).resolve().parents[1]


def setup_cfg() -> configparser.ConfigParser:
    parsed = configparser.ConfigParser()
    parsed.read(ROOT / "setup.cfg", encoding="utf-8")
    return parsed


def test_setup_cfg_lists_exactly_the_packages_of_the_tree():
    folders = {path.parent for path in (ROOT / "t2t_repro").rglob("*.py")}
    tree = {".".join(folder.relative_to(ROOT).parts) for folder in folders}
    listed = setup_cfg()["options"]["packages"].split()
    assert listed == sorted({*tree, "t2t_repro.configs"})


def test_every_folder_of_modules_is_a_package():
    folders = {path.parent for path in (ROOT / "t2t_repro").rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").exists()] == []


def test_package_data_takes_every_file_that_is_no_module():
    data = setup_cfg()["options.package_data"]
    for path in (ROOT / "t2t_repro").rglob("*"):
        if path.is_file() and path.suffix not in (".py", ".pyc"):
            package = next(f for f in path.parents if (f / "__init__.py").exists())
            patterns = data[".".join(package.relative_to(ROOT).parts)]
            name = path.relative_to(package)
            assert any(map(name.match, re.split(r"[,\s]+", patterns))), path


def test_package_data_takes_every_set_and_the_typing_mark():
    data = setup_cfg()["options.package_data"]
    assert data["t2t_repro.configs"] == "*.yaml"
    assert "py.typed" in data["t2t_repro"].split()
    assert (ROOT / "t2t_repro" / "py.typed").exists()


def test_pyproject_holds_the_build_backend_alone():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert re.findall(r"^\[.*\]$", text, re.MULTILINE) == ["[build-system]"]


def test_the_version_is_written_once():
    assert setup_cfg()["metadata"]["version"] == "attr: t2t_repro.__version__"
    assert re.fullmatch(r"\d+\.\d+\.\d+", t2t_repro.__version__)
