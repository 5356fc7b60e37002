"""Tests of the order in which files and folders are synced to disk."""

import os
from pathlib import Path

import pytest

from t2t_repro.system.atomic_dir import whole_folder
from t2t_repro.system.atomic_file import write_text_atomically
from t2t_repro.system.durability import make_folders, sync
from t2t_repro.system.resumable_file import resumable_file


@pytest.fixture
def synced(tmp_path, monkeypatch):
    """Returns the path of each fsync and the names in the folder at that time."""
    events = []

    def fsync(descriptor):
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        names = sorted(each.name for each in tmp_path.iterdir())
        events.append((path.relative_to(tmp_path).as_posix(), names))

    monkeypatch.setattr(os, "fsync", fsync)
    return events


def test_a_file_is_synced_before_its_name(tmp_path, synced):
    write_text_atomically(tmp_path / "file", "text")
    (first, before), (second, after) = synced
    assert first.startswith(".file.")
    assert before == [first]
    assert (second, after) == (".", ["file"])


def test_the_names_of_new_folders_are_synced(tmp_path, synced):
    make_folders(tmp_path / "a" / "b")
    assert [name for name, _ in synced] == [".", "a"]
    make_folders(tmp_path / "a" / "b")
    assert len(synced) == 2


def test_a_folder_in_a_new_parent_is_durable(tmp_path, synced):
    with whole_folder(tmp_path / "parent" / "final"):
        pass
    names = [name for name, _ in synced]
    assert names[0] == "."
    assert names[-1] == "parent"


def test_the_journal_of_a_file_is_synced_before_the_file_exists(tmp_path, synced):
    with resumable_file(tmp_path / "out", {}) as file:
        file.append("text", {})
    folders = [names for path, names in synced if path == "."]
    journal = "out.partial.journal"
    assert folders == [[journal], ["out.partial", journal], ["out", journal]]


def test_folders_that_cannot_be_read_are_not_synced(tmp_path, monkeypatch):
    """Only root can read such a folder, so that the error is simulated."""

    def fail(path, flags):
        raise PermissionError(13, "Permission denied", str(path))

    (tmp_path / "file").touch()
    monkeypatch.setattr(os, "open", fail)
    sync(tmp_path)
    with pytest.raises(PermissionError):
        sync(tmp_path / "file")
