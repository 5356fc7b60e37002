"""Tests of resumable files: errors, killed processes, full disks, other inputs."""

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
    """Raised to interrupt the writing of a file."""


def write(path, *pieces, identity=IDENTITY, stop=False):
    """Appends pieces to a file; returns the state at its opening."""
    with resumable_file(path, identity) as file:
        state = dict(file.state)
        for piece in pieces:
            file.append(piece, {"lines": file.state.get("lines", 0) + 1})
        if stop:
            raise StoppedError
    return state


def interrupt(path, *pieces):
    with pytest.raises(StoppedError):
        write(path, *pieces, stop=True)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def assert_rejected(path, words, identity=IDENTITY):
    before = contents(path.parent)
    with pytest.raises(UserError, match=words), resumable_file(path, identity):
        pytest.fail("it was opened")
    assert contents(path.parent) == before


@pytest.fixture
def path(tmp_path):
    return tmp_path / "out.txt"


def test_a_file_is_renamed_when_it_is_complete(path):
    path.write_text("old")
    with resumable_file(path, IDENTITY) as file:
        file.append("zwölf\n", {})
        assert path.read_text() == "old"
        assert sorted(os.listdir(path.parent)) == ["out.txt", *NAMES]
    assert contents(path.parent) == {"out.txt": "zwölf\n".encode()}


def test_a_text_without_pieces_is_an_empty_file(path):
    assert write(path) == {}
    assert contents(path.parent) == {"out.txt": b""}


def test_resumes_an_interrupted_text_with_its_state(path):
    interrupt(path, "1\n", "2\n")
    assert sorted(os.listdir(path.parent)) == NAMES
    assert (path.parent / NAMES[0]).read_bytes() == b"1\n2\n"
    interrupt(path)
    assert write(path, "3\n") == {"lines": 2}
    assert contents(path.parent) == {"out.txt": b"1\n2\n3\n"}


def test_ctrl_c_after_a_write_keeps_the_new_state(path, monkeypatch):
    """Interrupts the second fsync, which belongs to the journal's record."""
    forced = []

    def interrupt_the_second(descriptor):
        forced.append(descriptor)
        if len(forced) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), resumable_file(path, IDENTITY) as file:
        monkeypatch.setattr(os, "fsync", interrupt_the_second)
        try:
            file.append("1\n", {"lines": 1})
        finally:
            assert file.state == {"lines": 1}
    monkeypatch.undo()
    assert write(path, "2\n") == {"lines": 1}
    assert contents(path.parent) == {"out.txt": b"1\n2\n"}


def test_resumes_after_a_killed_process(path):
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
def test_drops_incomplete_pieces_and_records(path, torn):
    interrupt(path, "1\n")
    for name, rest in zip(NAMES, (b"2\nhal", torn), strict=True):
        with open(path.parent / name, "ab") as file:
            file.write(rest)
    interrupt(path, "2\n")
    assert write(path, "3\n") == {"lines": 2}
    assert contents(path.parent) == {"out.txt": b"1\n2\n3\n"}


def test_rejects_another_identity(path):
    interrupt(path, "1\n")
    assert_rejected(
        path,
        "cannot resume .*: --beam_size was 4, is now 2; ",
        IDENTITY | {"--beam_size": 2},
    )
    assert_rejected(path, r"--nbest was None, is now 3", IDENTITY | {"--nbest": 3})
    assert_rejected(
        path, r"--beam_size was 4, is now None", {"input": IDENTITY["input"]}
    )
    assert write(path, "2\n") == {"lines": 1}


def test_starts_over_when_the_partial_text_is_removed(path):
    interrupt(path, "1\n")
    (path.parent / NAMES[0]).unlink()
    assert write(path, "2\n", identity={"input": "other"}) == {}
    assert contents(path.parent) == {"out.txt": b"2\n"}


def test_rejects_a_partial_file_without_a_journal(path):
    (path.parent / NAMES[0]).write_text("mine\n")
    assert_rejected(path, r"out\.txt\.partial: its journal .* is missing")


@pytest.mark.parametrize("journal", [b"", b"nonsense\n", b'{"input": "torn"'])
def test_rejects_a_damaged_journal(path, journal):
    interrupt(path, "1\n")
    (path.parent / NAMES[1]).write_bytes(journal)
    assert_rejected(path, "does not match its journal")


def test_rejects_a_text_that_lost_lines(path):
    interrupt(path, "1\n2\n")
    (path.parent / NAMES[0]).write_bytes(b"1\n")
    assert_rejected(path, "does not match its journal")


def test_rejects_a_second_writer(path):
    with resumable_file(path, IDENTITY) as file:
        assert_rejected(path, "is being written by another process")
        file.append("1\n", {})
    assert contents(path.parent) == {"out.txt": b"1\n"}


def test_rejects_a_missing_folder(tmp_path):
    with pytest.raises(UserError, match=r"cannot write .*absent/out\.txt: No such"):
        write(tmp_path / "absent" / "out.txt")


def test_writes_to_the_target_of_a_link(path):
    link = path.parent / "link.txt"
    link.symlink_to("out.txt")
    write(link, "1\n")
    assert link.is_symlink()
    assert path.read_text() == "1\n"


def test_the_journal_holds_one_short_line_per_piece(path):
    interrupt(path, *(["text " * 1000 + "\n"] * 50))
    lines = (path.parent / NAMES[1]).read_bytes().splitlines()
    assert len(lines) == 51
    assert json.loads(lines[-1]) == {"bytes": 50 * 5001, "state": {"lines": 50}}


def test_reports_a_full_disk_and_resumes_with_more_space(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small disk")
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=32k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("this machine does not let root mount a small disk")
    try:
        path, piece = disk / "out.txt", "text\n" * 1000
        with pytest.raises(UserError) as error:
            write(path, *([piece] * 20))
        full = "cannot write .*out.txt.partial: No space left on device"
        error.match(full)
        more = ["mount", "-o", "remount,size=1m", str(disk)]
        subprocess.run(more, check=True)
        last = json.loads((disk / NAMES[1]).read_bytes().splitlines()[-1])
        lines = last["state"]["lines"]
        assert 0 < lines < 20
        assert write(path, *([piece] * (20 - lines))) == {"lines": lines}
        assert contents(disk) == {"out.txt": (piece * 20).encode()}
    finally:
        subprocess.run(["umount", str(disk)], check=True)
