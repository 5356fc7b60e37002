"""`translate` resumes after interruptions, kills and a full disk."""

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

# Enough windows for a process to be interrupted before the end.
MANY_LINES = 200
SMALL_WINDOWS = ("--window", "8", "--batch_size", "4")


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """Returns a file of many lines, some of them empty."""
    generator = random.Random(2)
    path = tmp_path_factory.mktemp("many") / "in.en"
    words = [random_words(generator) for _ in range(MANY_LINES)]
    path.write_text("".join(" ".join(row[1:]) + "\n" for row in words))
    return path


@pytest.fixture(scope="module")
def whole(trained, many):
    """Returns the translation of the file without interruption."""
    target = many.with_name("whole.de")
    result = translate(trained, *files(many.parent, target), *SMALL_WINDOWS)
    assert result == (0, "", "")
    translation = target.read_bytes()
    assert translation.count(b"\n") == MANY_LINES
    return translation


def test_parts_of_a_file_are_those_of_the_whole_translation(trained, many, whole):
    nbest = ("--nbest", "2", "--beam_size", "2")
    for flags in ((), nbest):
        parts = []
        for part in range(3):
            target = many.with_name(f"part{part}")
            division = ("--shard_index", str(part), "--num_shards", "3")
            names = files(many.parent, target)
            result = translate(trained, *names, *SMALL_WINDOWS, *division, *flags)
            assert result == (0, "", "")
            parts.append(target.read_bytes())
        if flags:
            target = many.with_name("nbest.de")
            names = files(many.parent, target)
            translate(trained, *names, *SMALL_WINDOWS, *flags)
            whole = target.read_bytes()
        assert all(parts) and b"".join(parts) == whole


def files(folder, target):
    return ("--input_file", str(folder / "in.en"), "--output_file", str(target))


def pieces(target):
    """Returns the number of windows written so far."""
    journal = target.with_name("out.de.partial.journal")
    return journal.read_bytes().count(b"\n") - 1 if journal.exists() else 0


def interrupted(trained, folder, signal_number):
    """Runs the command in a process and sends a signal after three more windows."""
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
    """Returns a folder with the partial output of a killed process."""
    folder = tmp_path_factory.mktemp("killed")
    shutil.copy(many, folder)
    result = interrupted(trained, folder, signal.SIGKILL)
    assert result == (-signal.SIGKILL, "", "")
    return folder


@pytest.fixture
def killed_copy(killed, tmp_path):
    return Path(shutil.copytree(killed, tmp_path / "killed"))


def test_a_killed_process_leaves_a_partial_file_of_complete_lines(killed, whole):
    names = ["in.en", "out.de.partial", "out.de.partial.journal"]
    assert sorted(path.name for path in killed.iterdir()) == names
    partial = (killed / "out.de.partial").read_bytes()
    assert 0 < partial.count(b"\n") < MANY_LINES
    assert partial.endswith(b"\n")
    assert whole.startswith(partial)


def test_ctrl_c_saves_the_output_and_the_same_command_resumes_with_identical_output(
    trained, killed_copy, whole
):
    target = killed_copy / "out.de"
    before = pieces(target)
    result = interrupted(trained, killed_copy, signal.SIGINT)
    assert (result.status, result.out) == (130, "")
    after = pieces(target)
    assert after >= before + 3
    assert result.err.splitlines() == [
        f"resuming after line {8 * before:,} of {MANY_LINES}",
        f"{8 * after:,} lines are in {target}.partial; run the same command to resume",
        "interrupted",
    ]
    result = translate(trained, *files(killed_copy, target), *SMALL_WINDOWS)
    assert (result.status, result.out) == (0, "")
    assert result.err == f"resuming after line {8 * after:,} of {MANY_LINES}\n"
    assert target.read_bytes() == whole
    assert sorted(path.name for path in killed_copy.iterdir()) == ["in.en", "out.de"]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--beam_size", "1"), "--beam_size was 2, is now 1"),
        (("--alpha", "0.1"), "--alpha was 0.6, is now 0.1"),
        (("--window", "9"), "--window was 8, is now 9"),
        (("--scores",), "--scores was False, is now True"),
        (("--nbest", "2"), "--nbest was None, is now 2"),
        (("--checkpoint", "latest"), "model "),
    ],
)
def test_other_flags_do_not_resume(trained, killed_copy, flags, words):
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
def test_another_input_does_not_resume(trained, killed_copy, change):
    path = killed_copy / "in.en"
    lines = change(path.read_text().split("\n")[:-1])
    path.write_text("".join(f"{line}\n" for line in lines))
    refused(trained, killed_copy, f".partial: input was {MANY_LINES} lines (")


def refused(trained, folder, words, *flags):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    flags = (*files(folder, folder / "out.de"), *SMALL_WINDOWS, *flags)
    result = translate(trained, *flags)
    assert run_command.is_one_clear_line(result)
    assert words in result.err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_closed_pipe_ends_the_translation_silently(trained, many, whole):
    flags = ("--model_dir", str(trained.model_dir), "--input_file", str(many))
    process = run_command.start("translate", *flags, *SMALL_WINDOWS)
    first = process.stdout.readline()
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), err) == (141, "")
    assert whole.decode().startswith(first)


def test_a_translation_resumes_after_a_full_disk(trained, many, whole, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk requires root")
    mount = ["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(tmp_path)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this machine does not allow mounting a small disk")
    try:
        target = tmp_path / "out.de"
        flags = (*files(many.parent, target), *SMALL_WINDOWS)
        result = translate(trained, *flags)
        assert run_command.is_one_clear_line(result)
        full = f"cannot write {target}.partial: No space left on device"
        assert full in result.err
        journal = target.with_name("out.de.partial.journal").read_bytes()
        record = json.loads(journal[: journal.rindex(b"\n")].splitlines()[-1])
        assert 0 < record["state"]["lines"] < MANY_LINES
        more = ["mount", "-o", "remount,size=4m", str(tmp_path)]
        subprocess.run(more, check=True)
        assert translate(trained, *flags).status == 0
        assert target.read_bytes() == whole
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)
