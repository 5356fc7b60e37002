"""Who holds a folder keeps others out of it, until the process ends."""

import os
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from t2t_repro.system import locks
from t2t_repro.system.locks import (
    exclusive_lock,
    heartbeat_lock,
    shared_lock,
    try_exclusive_lock,
)
from tests.run_command import ROOT

HOLD = """
import sys, time
from pathlib import Path
from t2t_repro.system.locks import shared_lock
with shared_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_second_one_is_told(tmp_path):
    class TakenError(Exception):
        pass

    def taken():
        raise TakenError

    with (
        exclusive_lock(tmp_path, taken),
        pytest.raises(TakenError),
        exclusive_lock(tmp_path, taken),
    ):
        pass
    with exclusive_lock(tmp_path, taken):
        pass


def test_readers_share_a_folder_and_keep_it_from_being_removed(tmp_path):
    with (
        shared_lock(tmp_path),
        shared_lock(tmp_path),
        try_exclusive_lock(tmp_path) as free,
    ):
        assert not free
    with try_exclusive_lock(tmp_path) as free, try_exclusive_lock(tmp_path) as second:
        assert free
        assert not second


def test_a_folder_that_is_gone_cannot_be_read(tmp_path):
    with pytest.raises(FileNotFoundError), shared_lock(tmp_path / "absent"):
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
    with pytest.raises(FileNotFoundError), shared_lock(folder):
        pass


def test_nothing_is_left_of_a_reader_that_was_killed(tmp_path):
    arguments = [sys.executable, "-c", HOLD, str(tmp_path)]
    reader = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    with reader:
        assert reader.stdout.readline() == "held\n"
        with try_exclusive_lock(tmp_path) as free:
            assert not free
        reader.kill()
    with try_exclusive_lock(tmp_path) as free:
        assert free


def test_where_there_are_no_locks_folders_are_read_and_removed_all_the_same(
    tmp_path, monkeypatch
):
    def refused(descriptor, operation):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("t2t_repro.system.locks.fcntl.flock", refused)
    with shared_lock(tmp_path):
        pass
    with exclusive_lock(tmp_path, pytest.fail) as has_locks:
        assert not has_locks
    with try_exclusive_lock(tmp_path) as free:
        assert free
        shutil.rmtree(tmp_path)


class TakenError(Exception):
    """The folder is another machine's."""


def taken():
    raise TakenError


@pytest.fixture
def said(monkeypatch):
    """What is told; files are renewed five times a second."""
    monkeypatch.setattr(locks, "BEAT_SECONDS", 0.2)
    return []


def test_another_machine_is_kept_out_while_one_is_there(tmp_path, said):
    with heartbeat_lock(tmp_path, "one 1", said.append, taken):
        with pytest.raises(TakenError), heartbeat_lock(tmp_path, "two", print, taken):
            pass
        another = heartbeat_lock(tmp_path, "two 2", said.append, taken)
        with pytest.raises(TakenError), another:
            pass
    assert said == [f"one holds {tmp_path}; looking for 1 s whether it is still there"]
    assert list(tmp_path.iterdir()) == []
    with heartbeat_lock(tmp_path, "two 2", said.append, taken):
        pass
    assert len(said) == 1


def test_what_a_dead_machine_left_is_taken_over_and_its_own_at_once(tmp_path, said):
    (tmp_path / locks.SIGN).write_text("one 1")
    with heartbeat_lock(tmp_path, "one 1", said.append, taken):
        assert said == []
        (tmp_path / locks.SIGN).write_text("another has it now")
    assert (tmp_path / locks.SIGN).exists()
    with heartbeat_lock(tmp_path, "two 2", said.append, taken):
        assert len(said) == 1
        assert (tmp_path / locks.SIGN).read_text() == "two 2"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("left", [None, "dead 0"])
def test_of_many_machines_at_the_same_moment_one_gets_in(tmp_path, said, left):
    if left is not None:
        (tmp_path / locks.SIGN).write_text(left)
    start, inside = threading.Barrier(12), []

    def come(number):
        start.wait()
        try:
            with heartbeat_lock(tmp_path, f"machine {number}", said.append, taken):
                inside.append(number)
                time.sleep(2)
                assert inside == [number]
        except TakenError:
            return

    with ThreadPoolExecutor(12) as threads:
        list(threads.map(come, range(12)))
    assert len(inside) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_machine_has_one_name_until_it_starts_anew():
    assert locks.this_machine() == locks.this_machine()
    assert locks.this_machine().startswith(os.uname().nodename)
