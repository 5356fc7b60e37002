"""The command `translate` interrupted, killed and out of disk, and gone on with."""

import json
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests import run_command
from tests.commands.test_translate import random_words, translate

pytestmark = pytest.mark.medium

# Enough small windows that a process is met half-way.
MANY_LINES = 1500
SMALL_WINDOWS = ("--window", "8", "--batch_size", "4")


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """A file of many lines, some of them empty."""
    generator = random.Random(2)
    path = tmp_path_factory.mktemp("many") / "in.en"
    words = [random_words(generator) for _ in range(MANY_LINES)]
    path.write_text("".join(" ".join(row[1:]) + "\n" for row in words))
    return path


@pytest.fixture(scope="module")
def whole(trained, many):
    """Its translation in one go."""
    target = many.with_name("whole.de")
    done = translate(trained, *files(many.parent, target), *SMALL_WINDOWS)
    assert done == (0, "", "")
    found = target.read_bytes()
    assert found.count(b"\n") == MANY_LINES
    return found


def files(folder, target):
    return ("--input_file", str(folder / "in.en"), "--output_file", str(target))


def pieces(target):
    """Returns how many pieces are written."""
    journal = target.with_name("out.de.partial.journal")
    return journal.read_bytes().count(b"\n") - 1 if journal.exists() else 0


def interrupted(trained, folder, signal_number):
    """Runs the command in a process that is interrupted after some more pieces."""
    target = folder / "out.de"
    after = pieces(target) + 3
    flags = ("--model_dir", str(trained.model_dir), *files(folder, target))
    process = run_command.start("translate", *flags, *SMALL_WINDOWS)
    while pieces(target) < after and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal_number)
    out, err = process.communicate()
    return run_command.Done(process.returncode, out, err)


@pytest.fixture(scope="module")
def killed(trained, many, tmp_path_factory):
    """A folder in which a process was killed half-way."""
    folder = tmp_path_factory.mktemp("killed")
    shutil.copy(many, folder)
    done = interrupted(trained, folder, signal.SIGKILL)
    assert done == (-signal.SIGKILL, "", "")
    return folder


@pytest.fixture
def killed_copy(killed, tmp_path):
    return Path(shutil.copytree(killed, tmp_path / "killed"))


def test_a_killed_process_leaves_whole_lines_under_another_name(killed, whole):
    names = ["in.en", "out.de.partial", "out.de.partial.journal"]
    assert sorted(path.name for path in killed.iterdir()) == names
    kept = (killed / "out.de.partial").read_bytes()
    assert 0 < kept.count(b"\n") < MANY_LINES
    assert kept.endswith(b"\n")
    assert whole.startswith(kept)


def test_the_same_command_goes_on_and_nothing_shows_it(trained, killed_copy, whole):
    target = killed_copy / "out.de"
    lines = 8 * pieces(target)
    done = translate(trained, *files(killed_copy, target), *SMALL_WINDOWS)
    assert (done.status, done.out) == (0, "")
    assert done.err == f"resuming after line {lines:,} of 1,500\n"
    assert target.read_bytes() == whole
    assert sorted(path.name for path in killed_copy.iterdir()) == ["in.en", "out.de"]


def test_ctrl_c_keeps_what_is_done_and_says_so(trained, killed_copy, whole):
    target = killed_copy / "out.de"
    before = pieces(target)
    done = interrupted(trained, killed_copy, signal.SIGINT)
    assert (done.status, done.out) == (130, "")
    after = pieces(target)
    assert after >= before + 3
    assert done.err.splitlines() == [
        f"resuming after line {8 * before:,} of 1,500",
        f"{8 * after:,} lines are in {target}.partial; run the same command to resume",
        "interrupted.",
    ]
    translate(trained, *files(killed_copy, target), *SMALL_WINDOWS)
    assert target.read_bytes() == whole


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--beam_size", "1"), "--beam_size 2 there, 1 here"),
        (("--alpha", "0.1"), "--alpha 0.6 there, 0.1 here"),
        (("--window", "9"), "--window 8 there, 9 here"),
        (("--scores",), "--scores False there, True here"),
        (("--nbest", "2"), "--nbest None there, 2 here"),
        (("--checkpoint", "latest"), "model "),
    ],
)
def test_other_flags_do_not_go_on(trained, killed_copy, flags, words):
    refused(trained, killed_copy, words, *flags)


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: [*lines, "eleven"],
        lambda lines: lines[:-1],
        lambda lines: ["eleven", *lines[1:]],
        lambda lines: [*lines[:-1], "eleven"],
    ],
)
def test_another_input_does_not_go_on(trained, killed_copy, change):
    path = killed_copy / "in.en"
    lines = change(path.read_text().split("\n")[:-1])
    path.write_text("".join(f"{line}\n" for line in lines))
    refused(trained, killed_copy, "was begun otherwise: input 1500 lines (")


def refused(trained, folder, words, *flags):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    flags = (*files(folder, folder / "out.de"), *SMALL_WINDOWS, *flags)
    done = translate(trained, *flags)
    assert run_command.is_one_clear_line(done)
    assert words in done.err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_reader_that_has_enough_ends_it_silently(trained, many, whole):
    flags = ("--model_dir", str(trained.model_dir), "--input_file", str(many))
    process = run_command.start("translate", *flags, *SMALL_WINDOWS)
    first = process.stdout.readline()
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), err) == (141, "")
    assert whole.decode().startswith(first)


def test_a_small_disk_keeps_whole_pieces_and_more_room_goes_on(
    trained, many, whole, tmp_path
):
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small disk")
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(tmp_path)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this machine does not let root mount a small disk")
    try:
        target = tmp_path / "out.de"
        flags = (*files(many.parent, target), *SMALL_WINDOWS)
        done = translate(trained, *flags)
        assert run_command.is_one_clear_line(done)
        full = f"cannot write {target}.partial: No space left on device"
        assert full in done.err
        journal = target.with_name("out.de.partial.journal").read_bytes()
        kept = json.loads(journal[: journal.rindex(b"\n")].splitlines()[-1])
        assert 0 < kept["state"]["lines"] < MANY_LINES
        more = ["mount", "-o", "remount,size=4m", str(tmp_path)]
        subprocess.run(more, check=True)
        assert translate(trained, *flags).status == 0
        assert target.read_bytes() == whole
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)
