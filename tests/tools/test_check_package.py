"""What is built holds the package and nothing else; what lacks a part is refused."""

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

WHOLE = check_package.wanted_files(check_package.ROOT)


def wheel(folder, names):
    path = folder / "t2t_repro-0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, "")
    return path


def test_a_whole_wheel_passes(tmp_path):
    metadata = "t2t_repro-0.dist-info/METADATA"
    check_package.check_contents(
        wheel(tmp_path, [*WHOLE, metadata]), check_package.ROOT
    )


@pytest.mark.parametrize(
    "left_out",
    [
        "t2t_repro/py.typed",
        "t2t_repro/configs/big.yaml",
        "t2t_repro/models/ensemble.py",
    ],
)
def test_a_wheel_that_lacks_something_is_refused_by_name(tmp_path, left_out):
    names = WHOLE - {left_out}
    with pytest.raises(UserError, match=f"lacks {left_out}; see setup.cfg"):
        check_package.check_contents(wheel(tmp_path, names), check_package.ROOT)


def test_modules_of_another_tree_are_refused(tmp_path):
    names = {*WHOLE, "t2t_repro/old_module.py"}
    with pytest.raises(UserError, match=r"holds t2t_repro/old_module\.py beyond"):
        check_package.check_contents(wheel(tmp_path, names), check_package.ROOT)


def test_an_sdist_holds_its_sets_in_configs(tmp_path):
    path = tmp_path / "t2t_repro-0.tar.gz"
    a_set = tmp_path / "big.yaml"
    a_set.write_text("dropout: 0.3\n")
    with tarfile.open(path, "w:gz") as archive:
        archive.add(a_set, "t2t_repro-0/configs/big.yaml")
    assert check_package.names_in(path) == {"t2t_repro/configs/big.yaml"}


def test_the_commands_of_the_reference_are_tried():
    page = check_package.ROOT / "docs" / "reference" / "index.md"
    text = page.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `python -m t2t_repro\.(\w+)`", text, re.MULTILINE)
    assert len(rows) >= 9
    found = set(check_package.commands(check_package.ROOT))
    assert set(rows) - found == set()
    assert found.isdisjoint({"cli", "translator", "procedure"})


def test_the_lowest_of_each_range_is_a_constraint(tmp_path):
    (tmp_path / "setup.cfg").write_text(
        "[options]\ninstall_requires =\n    # Why.\n    keras-nlp>=0.18.1,<0.33\n"
        "    grpcio>=1.70\n[options.extras_require]\ntest =\n    pytest>=9.0\n"
    )
    found = check_package.lowest(tmp_path / "setup.cfg")
    assert found == "keras-nlp==0.18.1.*\ngrpcio==1.70.*\n"


def test_an_interpreter_that_is_not_there_is_one_clear_line():
    done = run_command.run("tools/check_package.py", "--python", "python0")
    assert run_command.is_one_clear_line(done)
    assert "--python python0: there is no such program" in done.err


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    return check_package.build(tmp_path_factory.mktemp("built"))


@pytest.mark.medium
def test_wheel_and_sdist_are_built_from_the_tracked_files(archives):
    assert [path.suffix for path in archives] == [".whl", ".gz"]
    source = archives[0].parents[1] / "source"
    for archive in archives:
        check_package.check_contents(archive, source)
    kept = check_package.names_in(archives[1])
    assert {"setup.cfg", "pyproject.toml", "README.md", "LICENSE"} <= kept


@pytest.fixture(scope="module")
def package_index():
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run"]
    wanted = ["--ignore-installed", "--no-deps", "sacremoses"]
    done = subprocess.run([*pip, *wanted], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("pip cannot reach a package index")


@pytest.fixture
def packages(tmp_path):
    """A list of an environment that has two packages and lacks a third."""
    path = tmp_path / "packages.txt"
    path.write_text("# Versions.\ntqdm==4.67.3\nTyping_Extensions==4.15.0\nclick\n")
    return path


def project(folder, *requirements):
    """Writes a wheel that holds nothing but requirements."""
    path = folder / "example-1.0-py3-none-any.whl"
    metadata = "Metadata-Version: 2.1\nName: example\nVersion: 1.0\n"
    metadata += "".join(f"Requires-Dist: {each}\n" for each in requirements)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("example-1.0.dist-info/METADATA", metadata)
        archive.writestr("example-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\n")
    return path


def test_names_of_packages_are_normalized(packages):
    wanted = {"tqdm": "4.67.3", "typing-extensions": "4.15.0", "click": ""}
    assert read_packages(packages) == wanted


@pytest.mark.medium
def test_colabs_own_versions_satisfy_a_requirement(tmp_path, packages):
    wheel_file = project(tmp_path, "tqdm>=4.67,<5", "typing-extensions>=4.15.0")
    assert check_colab(wheel_file, packages) == []


@pytest.mark.medium
@pytest.mark.usefixtures("package_index")
@pytest.mark.parametrize(
    ("requirement", "message"),
    [
        ("tqdm>4.67.3", r"example.* would replace tqdm 4\.67\.3 by 4\.\d+\.\d+: "),
        ("typing.extensions<4.15", r"would replace typing-extensions 4\.15\.0 by 4"),
        ("six", r"packages\.txt does not list six, which example.* requires: add"),
        ("tqdm==0", r"pip cannot resolve example.* in Colab: ERROR: .*tqdm==0"),
    ],
)
def test_what_colab_cannot_keep_is_reported(tmp_path, packages, requirement, message):
    with pytest.raises(UserError, match=message):
        check_colab(project(tmp_path, requirement, "click"), packages)


@pytest.mark.medium
@pytest.mark.usefixtures("package_index")
def test_the_wheel_replaces_no_package_of_colab(archives):
    added = check_colab(archives[0])
    assert {line.split()[0] for line in added} >= {"sacrebleu", "sacremoses"}
