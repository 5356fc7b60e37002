"""Versions are numbered, and whole or not there."""

import threading

import pytest

from t2t_repro.serving.versions import check_format, write_version
from t2t_repro.system.errors import UserError


def fill(folder):
    (folder / "file").write_text("x")


def test_the_next_version_is_one_more_than_the_largest_number(tmp_path):
    assert write_version(tmp_path / "absent", fill) == tmp_path / "absent" / "1"
    for name in ("3", "11", "x", "2.5", "²"):
        (tmp_path / name).mkdir()
    (tmp_path / "99").write_text("a file is no version")
    assert write_version(tmp_path, fill) == tmp_path / "12"


def test_a_version_takes_its_name_when_it_is_whole(tmp_path):
    folder = tmp_path / "exported"
    seen = []

    def write(aside):
        assert list(aside.iterdir()) == []
        fill(aside)
        seen.extend(path.name for path in folder.iterdir())

    final = write_version(folder, write)
    (aside,) = seen
    assert not aside.isdecimal()
    assert (final / "file").read_text() == "x"
    assert [path.name for path in folder.iterdir()] == ["1"]
    # Whoever serves may be another user than whoever exports.
    assert final.stat().st_mode == folder.stat().st_mode


def test_two_that_are_written_at_once_are_two_versions(tmp_path):
    both_write = threading.Barrier(2)

    def write(name):
        def filled(folder):
            (folder / name).write_text(name)
            both_write.wait(timeout=60)

        write_version(tmp_path, filled)

    threads = [threading.Thread(target=write, args=[name]) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {path.name for path in tmp_path.iterdir()} == {"1", "2"}
    files = [[each.name for each in (tmp_path / n).iterdir()] for n in "12"]
    assert sorted(files) == [["a"], ["b"]]


def test_nothing_is_left_of_one_that_fails(tmp_path):
    def fails(folder):
        fill(folder)
        raise KeyError

    with pytest.raises(KeyError):
        write_version(tmp_path, fails)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed(tmp_path):
    (tmp_path / ".writing-1").mkdir()
    (tmp_path / ".writing-1" / "half").write_text("x")
    write_version(tmp_path, fill)
    assert [path.name for path in tmp_path.iterdir()] == ["1"]


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserError, match=r"--export_dir .*/file/e: Not a directory"):
        write_version(tmp_path / "file" / "e", fill)


def test_versions_of_another_format_are_named(tmp_path):
    check_format(tmp_path / "absent", "file")
    write_version(tmp_path, fill)
    check_format(tmp_path, "file")
    with pytest.raises(UserError, match=r"/1 has no other, so it is of another format"):
        check_format(tmp_path, "other")
