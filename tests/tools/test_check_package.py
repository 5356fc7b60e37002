"""Tests of the contents of wheel and sdist, and of installation in Colab."""

import base64
import csv
import hashlib
import json
import os
import re
import zipfile

import check_package
import pytest
from colab_packages import check_colab

import t2t_repro
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


def build(work, umask):
    before = os.umask(umask)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SOURCE_DATE_EPOCH", "1500000000")
            return check_package.build(work)
    finally:
        os.umask(before)


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    return build(tmp_path_factory.mktemp("one"), 0o022)


@pytest.mark.medium
def test_two_builds_are_byte_identical(archives, tmp_path):
    others = build(tmp_path / "another folder", 0o077)
    for one, other in zip(archives, others, strict=True):
        assert one.read_bytes() == other.read_bytes()
    with zipfile.ZipFile(archives[0]) as wheel:
        assert {each.date_time for each in wheel.infolist()} == {
            (2017, 7, 14, 2, 40, 0)  # date --utc --date @1500000000
        }


@pytest.mark.medium
def test_the_wheel_has_a_true_bill_of_materials(archives):
    """It states that there are no components, so no file may be from elsewhere."""
    with zipfile.ZipFile(archives[0]) as wheel:
        contents = {name: wheel.read(name) for name in wheel.namelist()}
    folder = f"t2t_repro-{t2t_repro.__version__}.dist-info"
    name = f"{folder}/sboms/t2t_repro.cdx.json"
    sbom = json.loads(contents[name])
    assert (sbom["bomFormat"], sbom["specVersion"]) == ("CycloneDX", "1.6")
    component = sbom["metadata"]["component"]
    assert component["purl"] == f"pkg:pypi/t2t-repro@{t2t_repro.__version__}"
    assert component["licenses"] == [{"license": {"id": "Apache-2.0"}}]
    assert sbom["metadata"]["timestamp"] == "2017-07-14T02:40:00Z"
    assert sbom["components"] == []
    assert {path.partition("/")[0] for path in contents} == {"t2t_repro", folder}
    for path, data in contents.items():
        if path.startswith("t2t_repro/"):
            text = data.decode()  # No library, font or picture.
            assert not re.search(r"copyright|spdx-|@license|©", text, re.I), path
            is_script = path.endswith((".py", ".js", ".css"))
            assert not is_script or max(map(len, text.split("\n"))) < 500, path
    rows = list(csv.reader(contents[f"{folder}/RECORD"].decode().splitlines()))
    assert sorted(row[0] for row in rows) == sorted(contents)
    for path, digest, size in rows:
        if path != f"{folder}/RECORD":
            value = base64.urlsafe_b64encode(hashlib.sha256(contents[path]).digest())
            assert digest == f"sha256={value.decode().rstrip('=')}"
            assert int(size) == len(contents[path])


@pytest.mark.medium
def test_builds_wheel_and_sdist_from_tracked_files(archives):
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
