"""Tests of the numbered versions of an export."""

import threading

import pytest

from t2t_repro.serving.versions import check_format, write_version
from t2t_repro.system.errors import UserError


def fill(folder):
    (folder / "file").write_text("x")


def test_the_next_version_is_the_largest_number_plus_one(tmp_path):
    assert write_version(tmp_path / "absent", fill) == tmp_path / "absent" / "1"
    for name in ("3", "11", "x", "2.5", "²"):
        (tmp_path / name).mkdir()
    (tmp_path / "99").write_text("a file is no version")
    assert write_version(tmp_path, fill) == tmp_path / "12"


def test_a_version_is_renamed_when_it_is_complete(tmp_path):
    folder = tmp_path / "exported"
    names = []

    def write(aside):
        assert list(aside.iterdir()) == []
        fill(aside)
        names.extend(path.name for path in folder.iterdir())

    final = write_version(folder, write)
    (aside,) = names
    assert not aside.isdecimal()
    assert (final / "file").read_text() == "x"
    assert [path.name for path in folder.iterdir()] == ["1"]
    # The server may run as another user, who must be able to read the version.
    assert final.stat().st_mode == folder.stat().st_mode


def test_parallel_exports_write_two_versions(tmp_path):
    barrier = threading.Barrier(2)

    def write(name):
        def write_file(folder):
            (folder / name).write_text(name)
            barrier.wait(timeout=60)

        write_version(tmp_path, write_file)

    threads = [threading.Thread(target=write, args=[name]) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {path.name for path in tmp_path.iterdir()} == {"1", "2"}
    files = [[each.name for each in (tmp_path / n).iterdir()] for n in "12"]
    assert sorted(files) == [["a"], ["b"]]


def test_a_failed_export_leaves_no_files(tmp_path):
    def fill_and_fail(folder):
        fill(folder)
        raise KeyError

    with pytest.raises(KeyError):
        write_version(tmp_path, fill_and_fail)
    assert list(tmp_path.iterdir()) == []


def test_removes_incomplete_versions_of_killed_processes(tmp_path):
    (tmp_path / ".writing-1").mkdir()
    (tmp_path / ".writing-1" / "half").write_text("x")
    write_version(tmp_path, fill)
    assert [path.name for path in tmp_path.iterdir()] == ["1"]


def test_error_names_a_folder_that_is_not_writable(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserError, match=r"--export_dir .*/file/e: Not a directory"):
        write_version(tmp_path / "file" / "e", fill)


def test_rejects_versions_of_another_format(tmp_path):
    check_format(tmp_path / "absent", "file")
    write_version(tmp_path, fill)
    check_format(tmp_path, "file")
    with pytest.raises(
        UserError, match=r"/1 does not contain other, so it was exported in another"
    ):
        check_format(tmp_path, "other")
