"""Who holds a folder keeps others out of it, until the process ends."""

import shutil
import subprocess
import sys

import pytest

from t2t_repro.system.locks import alone_in, if_unread, reading_in
from tests.run_command import ROOT

HOLD = """
import sys, time
from pathlib import Path
from t2t_repro.system.locks import reading_in
with reading_in(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_second_one_is_told(tmp_path):
    class TakenError(Exception):
        pass

    def taken():
        raise TakenError

    with (
        alone_in(tmp_path, taken),
        pytest.raises(TakenError),
        alone_in(tmp_path, taken),
    ):
        pass
    with alone_in(tmp_path, taken):
        pass


def test_readers_share_a_folder_and_keep_it_from_being_removed(tmp_path):
    with reading_in(tmp_path), reading_in(tmp_path), if_unread(tmp_path) as free:
        assert not free
    with if_unread(tmp_path) as free, if_unread(tmp_path) as second:
        assert free
        assert not second


def test_a_folder_that_is_gone_cannot_be_read(tmp_path):
    with pytest.raises(FileNotFoundError), reading_in(tmp_path / "absent"):
        pass


def test_a_folder_that_was_exchanged_is_not_mistaken_for_the_old_one(
    tmp_path, monkeypatch
):
    """As when a reader waits for the lock of somebody who removes the folder."""
    folder = tmp_path / "step"
    folder.mkdir()

    def exchanged(descriptor, operation):
        # The old one stays, so that the new one cannot get its number.
        folder.rename(tmp_path / "old")
        folder.mkdir()

    monkeypatch.setattr("t2t_repro.system.locks.fcntl.flock", exchanged)
    with pytest.raises(FileNotFoundError), reading_in(folder):
        pass


def test_nothing_is_left_of_a_reader_that_was_killed(tmp_path):
    arguments = [sys.executable, "-c", HOLD, str(tmp_path)]
    reader = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    with reader:
        assert reader.stdout.readline() == "held\n"
        with if_unread(tmp_path) as free:
            assert not free
        reader.kill()
    with if_unread(tmp_path) as free:
        assert free


def test_where_there_are_no_locks_folders_are_read_and_removed_all_the_same(
    tmp_path, monkeypatch
):
    def refused(descriptor, operation):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("t2t_repro.system.locks.fcntl.flock", refused)
    with reading_in(tmp_path):
        pass
    with if_unread(tmp_path) as free:
        assert free
        shutil.rmtree(tmp_path)
