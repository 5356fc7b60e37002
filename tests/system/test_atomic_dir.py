"""Tests of atomic folder writing."""

import errno
import os
import stat
from contextlib import nullcontext
from pathlib import Path

import pytest

from t2t_repro.system.atomic_dir import whole_folder


def fill(folder, text):
    (folder / "below").mkdir()
    (folder / "below" / "file").write_text(text)


def test_a_complete_folder_replaces_the_old_one(tmp_path):
    final = tmp_path / "made" / "final"
    for text in ("old", "new"):
        with whole_folder(final) as aside:
            fill(aside, text)
            assert (final / "below" / "file").exists() == (text == "new")
    assert (final / "below" / "file").read_text() == "new"
    assert list(final.parent.iterdir()) == [final]


def test_an_error_keeps_the_old_folder(tmp_path):
    final = tmp_path / "final"
    with whole_folder(final) as aside:
        fill(aside, "old")
    with pytest.raises(ZeroDivisionError), whole_folder(final) as aside:
        fill(aside, "new")
        raise ZeroDivisionError
    assert (final / "below" / "file").read_text() == "old"
    assert list(tmp_path.iterdir()) == [final]


def test_a_failed_rename_keeps_the_old_folder(tmp_path, monkeypatch):
    """The old folder has already been moved away when the second rename fails."""
    final, rename = tmp_path / "final", Path.rename
    with whole_folder(final) as aside:
        fill(aside, "old")

    def fail(path, target):
        if path.name == ".writing-final":
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(OSError, match="Input/output"), whole_folder(final) as aside:
        fill(aside, "new")
    assert (final / "below" / "file").read_text() == "old"
    assert list(tmp_path.iterdir()) == [final]


def test_removes_temporary_folders_of_a_killed_process(tmp_path):
    for name in (".writing-final", ".writing-over-final"):
        (tmp_path / name).mkdir()
        fill(tmp_path / name, "half")
    with whole_folder(tmp_path / "final") as aside:
        assert list(aside.iterdir()) == []
    assert [path.name for path in tmp_path.iterdir()] == ["final"]


@pytest.mark.parametrize(
    ("error", "of_folders", "is_fatal"),
    [
        (errno.EINVAL, True, False),
        (errno.EBADF, True, False),
        (errno.EINVAL, False, True),
        (errno.EIO, True, True),
    ],
)
def test_some_file_systems_cannot_sync_folders(
    tmp_path, monkeypatch, error, of_folders, is_fatal
):
    def fsync(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode) == of_folders:
            raise OSError(error, os.strerror(error))

    monkeypatch.setattr(os, "fsync", fsync)
    raises = pytest.raises(OSError, match=f"{os.strerror(error)}: '{tmp_path}")
    with raises if is_fatal else nullcontext(), whole_folder(tmp_path / "f") as aside:
        fill(aside, "text")
    assert (tmp_path / "f").exists() != is_fatal
