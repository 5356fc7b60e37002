"""Tests of folder locks within and between processes and machines."""

import os
import resource
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


def test_exclusive_lock_reports_a_second_holder(tmp_path):
    class LockedError(Exception):
        pass

    def raise_locked():
        raise LockedError

    with (
        exclusive_lock(tmp_path, raise_locked),
        pytest.raises(LockedError),
        exclusive_lock(tmp_path, raise_locked),
    ):
        pass
    with exclusive_lock(tmp_path, raise_locked):
        pass


def test_shared_locks_exclude_an_exclusive_lock(tmp_path):
    with (
        shared_lock(tmp_path),
        shared_lock(tmp_path),
        try_exclusive_lock(tmp_path) as free,
    ):
        assert not free
    with try_exclusive_lock(tmp_path) as free, try_exclusive_lock(tmp_path) as second:
        assert free
        assert not second


def test_shared_lock_rejects_a_missing_folder(tmp_path):
    with pytest.raises(FileNotFoundError), shared_lock(tmp_path / "absent"):
        pass


def test_shared_lock_detects_a_replaced_folder(tmp_path, monkeypatch):
    """Replaces the folder while the reader waits for its lock."""
    folder = tmp_path / "step"
    folder.mkdir()

    def replace(descriptor, operation):
        # Keeping the old folder prevents the reuse of its inode number.
        folder.rename(tmp_path / "old")
        folder.mkdir()

    monkeypatch.setattr("t2t_repro.system.locks.fcntl.flock", replace)
    with pytest.raises(FileNotFoundError), shared_lock(folder):
        pass


def test_a_killed_reader_releases_its_lock(tmp_path):
    arguments = [sys.executable, "-c", HOLD, str(tmp_path)]
    reader = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    with reader:
        assert reader.stdout.readline() == "held\n"
        with try_exclusive_lock(tmp_path) as free:
            assert not free
        reader.kill()
    with try_exclusive_lock(tmp_path) as free:
        assert free


def test_works_on_file_systems_without_locks(tmp_path, monkeypatch):
    def unsupported(descriptor, operation):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("t2t_repro.system.locks.fcntl.flock", unsupported)
    with shared_lock(tmp_path):
        pass
    with exclusive_lock(tmp_path, pytest.fail) as has_locks:
        assert not has_locks
    with try_exclusive_lock(tmp_path) as free:
        assert free
        shutil.rmtree(tmp_path)


class LockedError(Exception):
    """Raised when another machine holds the lock."""


def raise_locked():
    raise LockedError


@pytest.fixture
def messages(monkeypatch):
    """List for the logged messages; also shortens the heartbeat to 0.2 s."""
    monkeypatch.setattr(locks, "BEAT_SECONDS", 0.2)
    return []


def test_heartbeat_lock_excludes_other_machines(tmp_path, messages):
    with heartbeat_lock(tmp_path, "one 1", messages.append, raise_locked):
        with (
            pytest.raises(LockedError),
            heartbeat_lock(tmp_path, "two", print, raise_locked),
        ):
            pass
        another = heartbeat_lock(tmp_path, "two 2", messages.append, raise_locked)
        with pytest.raises(LockedError), another:
            pass
    assert messages == [
        f"one has locked {tmp_path}; waiting 1 s to see whether it is still running"
    ]
    assert list(tmp_path.iterdir()) == []
    with heartbeat_lock(tmp_path, "two 2", messages.append, raise_locked):
        pass
    assert len(messages) == 1


def test_takes_over_stale_locks_and_its_own_at_once(tmp_path, messages):
    (tmp_path / locks.SIGN).write_text("one 1")
    with heartbeat_lock(tmp_path, "one 1", messages.append, raise_locked):
        assert messages == []
        (tmp_path / locks.SIGN).write_text("another has it now")
    assert (tmp_path / locks.SIGN).exists()
    with heartbeat_lock(tmp_path, "two 2", messages.append, raise_locked):
        assert len(messages) == 1
        assert (tmp_path / locks.SIGN).read_text() == "two 2"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "stale", [None, pytest.param("dead 0", marks=pytest.mark.medium)]
)
def test_only_one_of_many_machines_gets_the_lock(tmp_path, messages, stale):
    if stale is not None:
        (tmp_path / locks.SIGN).write_text(stale)
    start, inside = threading.Barrier(12), []

    def enter(number):
        start.wait()
        try:
            with heartbeat_lock(
                tmp_path, f"machine {number}", messages.append, raise_locked
            ):
                inside.append(number)
                time.sleep(2)
                assert inside == [number]
        except LockedError:
            return

    with ThreadPoolExecutor(12) as threads:
        list(threads.map(enter, range(12)))
    assert len(inside) == 1
    assert list(tmp_path.iterdir()) == []


def test_machine_name_is_stable():
    assert locks.this_machine() == locks.this_machine()
    assert locks.this_machine().startswith(os.uname().nodename)


def test_a_lock_file_that_cannot_be_written_is_named(tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3, limits[1]))
    try:
        with (
            pytest.raises(OSError, match=r"File too large: .*training\.lock"),
            heartbeat_lock(tmp_path, "owner", print, print),
        ):
            pytest.fail("it was locked")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not any(tmp_path.iterdir())
