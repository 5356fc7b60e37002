"""Tests of the contents of wheel and sdist, and of installation in Colab."""

import zipfile

import check_package
import pytest
from colab_packages import check_colab

from t2t_repro.system.errors import UserError

FILES = check_package.package_files(check_package.ROOT)


def wheel(folder, names):
    path = folder / "t2t_repro-0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, "")
    return path


@pytest.mark.parametrize(
    "missing",
    ["t2t_repro/py.typed", "t2t_repro/configs/big.yaml"],
)
def test_rejects_a_wheel_with_a_missing_file(tmp_path, missing):
    names = FILES - {missing}
    with pytest.raises(UserError, match=f"lacks {missing}; see setup.cfg"):
        check_package.check_contents(wheel(tmp_path, names), check_package.ROOT)


def test_rejects_a_wheel_with_an_extra_module(tmp_path):
    names = {*FILES, "t2t_repro/old_module.py"}
    with pytest.raises(UserError, match=r"has t2t_repro/old_module\.py, which"):
        check_package.check_contents(wheel(tmp_path, names), check_package.ROOT)


def test_constraints_are_the_lowest_allowed_versions(tmp_path):
    (tmp_path / "setup.cfg").write_text(
        "[options]\ninstall_requires =\n    # Why.\n    keras-nlp>=0.18.1,<0.33\n"
        "    grpcio>=1.70\n[options.extras_require]\ntest =\n    pytest>=9.0\n"
    )
    constraints = check_package.lowest(tmp_path / "setup.cfg")
    assert constraints == "keras-nlp==0.18.1.*\ngrpcio==1.70.*\n"


@pytest.mark.medium
def test_builds_wheel_and_sdist_from_tracked_files(tmp_path):
    archives = check_package.build(tmp_path)
    assert [path.suffix for path in archives] == [".whl", ".gz"]
    source = archives[0].parents[1] / "source"
    for archive in archives:
        check_package.check_contents(archive, source)
    names = check_package.list_files(archives[1])
    assert {"setup.cfg", "pyproject.toml", "README.md", "LICENSE"} <= names


@pytest.mark.medium
def test_colab_keeps_its_packages(tmp_path):
    packages = tmp_path / "packages.txt"
    packages.write_text("# Versions.\ntqdm==4.67.3\nTyping_Extensions==4.15.0\n")
    project = tmp_path / "example-1.0-py3-none-any.whl"
    metadata = "Metadata-Version: 2.1\nName: example\nVersion: 1.0\n"
    metadata += "Requires-Dist: tqdm>=4.67,<5\nRequires-Dist: typing.extensions\n"
    with zipfile.ZipFile(project, "w") as archive:
        archive.writestr("example-1.0.dist-info/METADATA", metadata)
        archive.writestr("example-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\n")
    assert check_colab(project, packages) == []
