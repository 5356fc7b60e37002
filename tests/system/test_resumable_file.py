"""A file that goes on: after errors, kills and full disks, and never on other work."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from t2t_repro.system.errors import UserError
from t2t_repro.system.resumable_file import resumable_file

ROOT = Path(__file__).resolve().parents[1]
IDENTITY = {"input": "3 lines (ab)", "--beam_size": 4}
NAMES = ["out.txt.partial", "out.txt.partial.journal"]


class StoppedError(Exception):
    """What interrupts a test."""


def write(path, *pieces, identity=IDENTITY, stop=False):
    """Appends pieces; returns the state that was found."""
    with resumable_file(path, identity) as file:
        found = dict(file.state)
        for piece in pieces:
            file.append(piece, {"lines": file.state.get("lines", 0) + 1})
        if stop:
            raise StoppedError
    return found


def interrupt(path, *pieces):
    with pytest.raises(StoppedError):
        write(path, *pieces, stop=True)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def refused(path, words, identity=IDENTITY):
    before = contents(path.parent)
    with pytest.raises(UserError, match=words), resumable_file(path, identity):
        pytest.fail("it was opened")
    assert contents(path.parent) == before


@pytest.fixture
def path(tmp_path):
    return tmp_path / "out.txt"


def test_a_file_gets_its_name_when_it_is_whole(path):
    path.write_text("old")
    with resumable_file(path, IDENTITY) as file:
        file.append("zwölf\n", {})
        assert path.read_text() == "old"
        assert sorted(os.listdir(path.parent)) == ["out.txt", *NAMES]
    assert contents(path.parent) == {"out.txt": "zwölf\n".encode()}


def test_a_text_without_pieces_is_an_empty_file(path):
    assert write(path) == {}
    assert contents(path.parent) == {"out.txt": b""}


def test_an_interrupted_text_goes_on_with_its_state(path):
    interrupt(path, "1\n", "2\n")
    assert sorted(os.listdir(path.parent)) == NAMES
    assert (path.parent / NAMES[0]).read_bytes() == b"1\n2\n"
    interrupt(path)
    assert write(path, "3\n") == {"lines": 2}
    assert contents(path.parent) == {"out.txt": b"1\n2\n3\n"}


def test_ctrl_c_right_after_a_piece_was_written_knows_of_the_piece(path, monkeypatch):
    """The second time that data are forced to disk it is the journal's line."""
    forced = []

    def interrupted_at_the_second(descriptor):
        forced.append(descriptor)
        if len(forced) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), resumable_file(path, IDENTITY) as file:
        monkeypatch.setattr(os, "fsync", interrupted_at_the_second)
        try:
            file.append("1\n", {"lines": 1})
        finally:
            assert file.state == {"lines": 1}
    monkeypatch.undo()
    assert write(path, "2\n") == {"lines": 1}
    assert contents(path.parent) == {"out.txt": b"1\n2\n"}


def test_a_killed_process_leaves_whole_lines_and_the_next_goes_on(path):
    code = (
        "import os, signal, sys\n"
        "from t2t_repro.system.resumable_file import resumable_file\n"
        f"with resumable_file(sys.argv[1], {IDENTITY}) as file:\n"
        "    file.append('1\\n' * 5000, {'lines': 5000})\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code, str(path)]
    assert subprocess.run(command, env=environment).returncode == -signal.SIGKILL
    assert (path.parent / NAMES[0]).read_bytes() == b"1\n" * 5000
    assert write(path, "2\n") == {"lines": 5000}
    assert path.read_bytes() == b"1\n" * 5000 + b"2\n"


@pytest.mark.parametrize("torn", [b"", b'{"bytes": 400, "sta'])
def test_what_was_being_written_when_it_was_killed_is_written_again(path, torn):
    interrupt(path, "1\n")
    for name, rest in zip(NAMES, (b"2\nhal", torn), strict=True):
        with open(path.parent / name, "ab") as file:
            file.write(rest)
    interrupt(path, "2\n")
    assert write(path, "3\n") == {"lines": 2}
    assert contents(path.parent) == {"out.txt": b"1\n2\n3\n"}


def test_texts_of_different_things_are_not_mixed(path):
    interrupt(path, "1\n")
    refused(
        path,
        "begun otherwise: --beam_size 4 there, 2 here; ",
        IDENTITY | {"--beam_size": 2},
    )
    refused(path, r"--nbest None there, 3 here", IDENTITY | {"--nbest": 3})
    refused(path, r"--beam_size 4 there, None here", {"input": IDENTITY["input"]})
    assert write(path, "2\n") == {"lines": 1}


def test_a_person_who_removes_the_text_begins_anew(path):
    interrupt(path, "1\n")
    (path.parent / NAMES[0]).unlink()
    assert write(path, "2\n", identity={"input": "other"}) == {}
    assert contents(path.parent) == {"out.txt": b"2\n"}


def test_a_file_of_somebody_else_is_not_touched(path):
    (path.parent / NAMES[0]).write_text("mine\n")
    refused(path, r"out\.txt\.partial is in the way")


@pytest.mark.parametrize("journal", [b"", b"nonsense\n", b'{"input": "torn"'])
def test_a_damaged_journal_is_refused(path, journal):
    interrupt(path, "1\n")
    (path.parent / NAMES[1]).write_bytes(journal)
    refused(path, "do not agree; remove it")


def test_a_text_that_lost_lines_is_refused(path):
    interrupt(path, "1\n2\n")
    (path.parent / NAMES[0]).write_bytes(b"1\n")
    refused(path, "do not agree; remove it")


def test_two_processes_do_not_write_one_file(path):
    with resumable_file(path, IDENTITY) as file:
        refused(path, "is being written by another process")
        file.append("1\n", {})
    assert contents(path.parent) == {"out.txt": b"1\n"}


def test_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"cannot write .*absent/out\.txt: No such"):
        write(tmp_path / "absent" / "out.txt")


def test_a_link_stays_and_what_it_leads_to_is_replaced(path):
    link = path.parent / "link.txt"
    link.symlink_to("out.txt")
    write(link, "1\n")
    assert link.is_symlink()
    assert path.read_text() == "1\n"


def test_the_journal_holds_no_more_than_a_short_line_for_each_piece(path):
    interrupt(path, *(["text " * 1000 + "\n"] * 50))
    lines = (path.parent / NAMES[1]).read_bytes().splitlines()
    assert len(lines) == 51
    assert json.loads(lines[-1]) == {"bytes": 50 * 5001, "state": {"lines": 50}}


def test_a_full_disk_is_one_line_and_with_more_room_it_goes_on(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small disk")
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=32k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("this machine does not let root mount a small disk")
    try:
        path, piece = disk / "out.txt", "text\n" * 1000
        with pytest.raises(UserError) as refused:
            write(path, *([piece] * 20))
        full = "cannot write .*out.txt.partial: No space left on device"
        refused.match(full)
        more = ["mount", "-o", "remount,size=1m", str(disk)]
        subprocess.run(more, check=True)
        kept = json.loads((disk / NAMES[1]).read_bytes().splitlines()[-1])
        lines = kept["state"]["lines"]
        assert 0 < lines < 20
        assert write(path, *([piece] * (20 - lines))) == {"lines": lines}
        assert contents(disk) == {"out.txt": (piece * 20).encode()}
    finally:
        subprocess.run(["umount", str(disk)], check=True)
