"""Tests of the contents of wheel and sdist, and of installation in Colab."""

import re
import subprocess
import sys
import tarfile
import zipfile

import check_package
import pytest
from colab_packages import check_colab, read_packages

from t2t_repro.system.errors import UserError
from tests import run_command

FILES = check_package.package_files(check_package.ROOT)


def wheel(folder, names):
    path = folder / "t2t_repro-0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, "")
    return path


def test_accepts_a_complete_wheel(tmp_path):
    metadata = "t2t_repro-0.dist-info/METADATA"
    check_package.check_contents(
        wheel(tmp_path, [*FILES, metadata]), check_package.ROOT
    )


@pytest.mark.parametrize(
    "missing",
    [
        "t2t_repro/py.typed",
        "t2t_repro/configs/big.yaml",
        "t2t_repro/models/ensemble.py",
    ],
)
def test_rejects_a_wheel_with_a_missing_file(tmp_path, missing):
    names = FILES - {missing}
    with pytest.raises(UserError, match=f"lacks {missing}; see setup.cfg"):
        check_package.check_contents(wheel(tmp_path, names), check_package.ROOT)


def test_rejects_a_wheel_with_an_extra_module(tmp_path):
    names = {*FILES, "t2t_repro/old_module.py"}
    with pytest.raises(UserError, match=r"has t2t_repro/old_module\.py, which"):
        check_package.check_contents(wheel(tmp_path, names), check_package.ROOT)


def test_configs_of_an_sdist_are_those_of_the_package(tmp_path):
    path = tmp_path / "t2t_repro-0.tar.gz"
    config = tmp_path / "big.yaml"
    config.write_text("dropout: 0.3\n")
    with tarfile.open(path, "w:gz") as archive:
        archive.add(config, "t2t_repro-0/configs/big.yaml")
    assert check_package.names_in(path) == {"t2t_repro/configs/big.yaml"}


def test_commands_include_those_of_the_reference():
    page = check_package.ROOT / "docs" / "reference" / "index.md"
    text = page.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `python -m t2t_repro\.(\w+)`", text, re.MULTILINE)
    assert len(rows) >= 9
    commands = set(check_package.commands(check_package.ROOT))
    assert set(rows) - commands == set()
    assert commands.isdisjoint({"cli", "translator", "procedure"})


def test_constraints_are_the_lowest_allowed_versions(tmp_path):
    (tmp_path / "setup.cfg").write_text(
        "[options]\ninstall_requires =\n    # Why.\n    keras-nlp>=0.18.1,<0.33\n"
        "    grpcio>=1.70\n[options.extras_require]\ntest =\n    pytest>=9.0\n"
    )
    constraints = check_package.lowest(tmp_path / "setup.cfg")
    assert constraints == "keras-nlp==0.18.1.*\ngrpcio==1.70.*\n"


def test_rejects_an_unknown_interpreter():
    result = run_command.run("tools/check_package.py", "--python", "python0")
    assert run_command.is_one_clear_line(result)
    assert "--python python0: no such program" in result.err


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    return check_package.build(tmp_path_factory.mktemp("built"))


@pytest.mark.medium
def test_builds_wheel_and_sdist_from_tracked_files(archives):
    assert [path.suffix for path in archives] == [".whl", ".gz"]
    source = archives[0].parents[1] / "source"
    for archive in archives:
        check_package.check_contents(archive, source)
    names = check_package.names_in(archives[1])
    assert {"setup.cfg", "pyproject.toml", "README.md", "LICENSE"} <= names


@pytest.fixture(scope="module")
def package_index():
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run"]
    package = ["--ignore-installed", "--no-deps", "sacremoses"]
    process = subprocess.run([*pip, *package], capture_output=True, check=False)
    if process.returncode:
        pytest.skip("pip cannot reach a package index")


@pytest.fixture
def packages(tmp_path):
    """A list with two installed packages and one that is not installed."""
    path = tmp_path / "packages.txt"
    path.write_text("# Versions.\ntqdm==4.67.3\nTyping_Extensions==4.15.0\nclick\n")
    return path


def project(folder, *requirements):
    """Writes a wheel that contains nothing but its requirements; returns its path."""
    path = folder / "example-1.0-py3-none-any.whl"
    metadata = "Metadata-Version: 2.1\nName: example\nVersion: 1.0\n"
    metadata += "".join(f"Requires-Dist: {each}\n" for each in requirements)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("example-1.0.dist-info/METADATA", metadata)
        archive.writestr("example-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\n")
    return path


def test_normalizes_package_names(packages):
    expected = {"tqdm": "4.67.3", "typing-extensions": "4.15.0", "click": ""}
    assert read_packages(packages) == expected


@pytest.mark.medium
def test_accepts_requirements_that_colab_satisfies(tmp_path, packages):
    wheel_file = project(tmp_path, "tqdm>=4.67,<5", "typing-extensions>=4.15.0")
    assert check_colab(wheel_file, packages) == []


@pytest.mark.medium
@pytest.mark.usefixtures("package_index")
@pytest.mark.parametrize(
    ("requirements", "message"),
    [
        (
            ("tqdm>4.67.3", "typing.extensions<4.15"),
            r"example.* would replace tqdm 4\.67\.3 by 4\.\d+\.\d+, "
            r"typing-extensions 4\.15\.0 by 4\.\d+\.\d+: ",
        ),
        (("six",), r"packages\.txt does not list six, which example.* requires: add"),
        (("tqdm==0",), r"pip cannot resolve example.* in Colab: ERROR: .*tqdm==0"),
    ],
)
def test_reports_conflicts_with_colab(tmp_path, packages, requirements, message):
    with pytest.raises(UserError, match=message):
        check_colab(project(tmp_path, *requirements, "click"), packages)


@pytest.mark.medium
@pytest.mark.usefixtures("package_index")
def test_the_wheel_does_not_replace_packages_of_colab(archives):
    added = check_colab(archives[0])
    assert {line.split()[0] for line in added} >= {"sacrebleu", "sacremoses"}
