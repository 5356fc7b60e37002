"""Tests of replayed writes and of the files that a power failure may leave."""

import sys
from pathlib import Path

import pytest
from call_faults import recorded
from call_faults.disk import Recording

from tests import run_command

FOLDER = Path("/watched")


def record(tmp_path, *calls):
    """Returns the recording of calls (kind, path, other path, offset, data)."""
    log = tmp_path / "log"
    with log.open("wb") as file:
        for kind, path, other, place, data in calls:
            names = [str(FOLDER / name) if name else "" for name in (path, other)]
            line = "\t".join([kind, *names, str(place), str(len(data))])
            file.write(line.encode() + b"\n" + data)
    return Recording(FOLDER, log)


def replay(recording, kept, folder):
    recording.replay(kept, folder)
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


CREATE = ("create", "a.tmp", "", 0, b"")
WRITE = ("write", "a.tmp", "", 0, b"text")
SYNC = ("fsync", "a.tmp", "", 0, b"")
RENAME = ("rename", "a.tmp", "a", 0, b"")
SYNC_FOLDER = ("fsync", ".", "", 0, b"")


@pytest.mark.parametrize(
    ("calls", "unsynced"),
    [
        ([CREATE, WRITE, RENAME], [0, 1, 2]),
        ([CREATE, WRITE, SYNC, RENAME], [0, 2]),
        ([CREATE, WRITE, SYNC, RENAME, SYNC_FOLDER], []),
        ([CREATE, WRITE, SYNC_FOLDER, RENAME], [1, 2]),
    ],
)
def test_fsync_keeps_contents_or_names(tmp_path, calls, unsynced):
    recording = record(tmp_path, *calls)
    assert recording.unsynced(len(recording.changes)) == unsynced


def test_a_name_may_survive_without_contents(tmp_path):
    recording = record(tmp_path, CREATE, WRITE, RENAME)
    assert replay(recording, [2], tmp_path / "1") == {"a": b""}
    assert replay(recording, [0, 1], tmp_path / "2") == {"a.tmp": b"text"}
    assert replay(recording, [0, 1, 2], tmp_path / "3") == {"a": b"text"}


def test_replays_folders_holes_and_truncation(tmp_path):
    recording = record(
        tmp_path,
        ("mkdir", "b", "", 0, b""),
        ("create", "b/c", "", 0, b""),
        ("write", "b/c", "", 0, b"12"),
        ("write", "b/c", "", 2, b"34"),
        ("rename", "b", "d", 0, b""),
        ("truncate", "d/c", "", 3, b""),
        ("create", "done-7", "", 0, b""),
        ("unlink", "d/c", "", 0, b""),
    )
    assert replay(recording, range(6), tmp_path / "1") == {"d/c": b"123"}
    assert replay(recording, [0, 1, 3, 4], tmp_path / "2") == {"d/c": b"\0\00034"}
    assert replay(recording, range(7), tmp_path / "3") == {}
    assert recording.marks == {7: 6}


def test_a_lost_state_is_a_fault(tmp_path):
    (tmp_path / "file").write_text("first")
    recorded.check_file(tmp_path, 1)
    with pytest.raises(AssertionError, match="'first' is left"):
        recorded.check_file(tmp_path, 2)


@pytest.mark.medium
def test_replayed_writes_leave_whole_files():
    process = run_command.run_alone(
        "tools/replay_writes.py",
        *("--only", "shards,file,translation", "--subsets", "20"),
        python=sys.executable,
    )
    assert process.status == 0, process.out + process.err
    lines = process.out.splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        *("shards", "file", "translation")
    ]
    assert all(line.endswith(" 0 faults") for line in lines)
