"""Versions are numbered, and whole or not there."""

import pytest

from t2t_repro.errors import UserError
from t2t_repro.serving.versions import new_version, next_version


def test_the_next_version_is_one_more_than_the_largest_number(tmp_path):
    assert next_version(tmp_path / "absent").name == "1"
    for name in ("3", "11", "x", "2.5", ".writing-12", "²"):
        (tmp_path / name).mkdir()
    (tmp_path / "99").write_text("a file is no version")
    assert next_version(tmp_path) == tmp_path / "12"


def test_a_version_takes_its_name_when_it_is_whole(tmp_path):
    final = tmp_path / "exported" / "1"
    with new_version(final) as folder:
        (folder / "file").write_text("x")
        assert not final.exists()
        assert not folder.name.isdecimal()
    assert (final / "file").read_text() == "x"
    assert [path.name for path in final.parent.iterdir()] == ["1"]


def test_nothing_is_left_of_one_that_fails(tmp_path):
    with pytest.raises(KeyError), new_version(tmp_path / "1") as folder:
        (folder / "half").write_text("x")
        raise KeyError
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed(tmp_path):
    (tmp_path / ".writing-1").mkdir()
    (tmp_path / ".writing-1" / "half").write_text("x")
    with new_version(tmp_path / "1") as folder:
        assert list(folder.iterdir()) == []
    assert [path.name for path in tmp_path.iterdir()] == ["1"]


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("x")
    with (
        pytest.raises(UserError, match=r"--export_dir .*/file: Not a directory"),
        new_version(tmp_path / "file" / "1"),
    ):
        pass
