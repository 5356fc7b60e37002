"""The command `translate`: a line out for every line in."""

import os
import stat
import threading

import pytest

from tests import command_line

TEXT = "one two\n\nthree\r\n  \nfour\u2028five\nno line end"


def translate(trained, *arguments, stdin=b""):
    flags = ("--model_dir", str(trained.model_dir), *arguments)
    return command_line.run("translate", *flags, stdin=stdin)


@pytest.fixture(scope="module")
def expected(trained):
    """The translations, by way of standard input and output."""
    done = translate(trained, stdin=TEXT.encode())
    assert (done.status, done.err) == (0, "")
    lines = done.out.split("\n")
    assert lines.pop() == ""
    return lines


def test_there_is_a_line_for_every_line_and_blank_ones_stay_empty(expected):
    assert len(expected) == 6
    assert [bool(line) for line in expected] == [True, False, True, False, True, True]


def test_files_give_what_streams_give(trained, expected, tmp_path):
    source, target = tmp_path / "in.en", tmp_path / "out.de"
    source.write_bytes(TEXT.encode())
    done = translate(trained, "--input_file", str(source), "--output_file", str(target))
    assert done == (0, "", "")
    assert target.read_bytes().decode() == "".join(f"{line}\n" for line in expected)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.en", "out.de"]


def test_scores_stand_before_a_tab(trained, expected):
    done = translate(trained, "--scores", "--batch_size", "1", stdin=TEXT.encode())
    rows = [line.split("\t", 1) for line in done.out.split("\n")[:-1]]
    assert [text for _, text in rows] == expected
    assert [float(score) < 0 for score, _ in rows] == [bool(text) for text in expected]


def test_an_empty_stream_gives_nothing(trained):
    assert translate(trained) == (0, "", "")


def test_invalid_utf8_is_named_by_line_and_byte_and_nothing_is_written(
    trained, tmp_path
):
    done = translate(trained, stdin=b"one\ntw\xff\n")
    assert command_line.is_one_clear_line(done)
    assert "standard input:2:3: byte 0xff is not valid UTF-8" in done.err
    source, target = tmp_path / "in.en", tmp_path / "out.de"
    source.write_bytes(b"one\ntw\xff\n")
    target.write_text("old", encoding="utf-8")
    done = translate(trained, "--input_file", str(source), "--output_file", str(target))
    assert command_line.is_one_clear_line(done)
    assert f"{source}:2:3: byte 0xff" in done.err
    assert target.read_text(encoding="utf-8") == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.en", "out.de"]


def test_lines_that_are_too_long_are_cut_and_counted(trained):
    text = "one two " * 200 + "\none\n"
    done = translate(trained, "--beam_size", "1", stdin=text.encode())
    assert (done.status, done.out.count("\n")) == (0, 2)
    assert done.err == "cut, because longer than 512 subwords: 1 of the lines\n"


def test_a_device_or_a_pipe_is_written_to_and_stays_what_it_is(trained, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    done = translate(trained, "--output_file", str(pipe), stdin=b"one\n")
    reader.join(timeout=10)
    assert done.status == 0
    assert read[0].endswith(b"\n")
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk_is_one_clear_line(trained):
    done = translate(trained, "--output_file", "/dev/full", stdin=b"one\n")
    assert command_line.is_one_clear_line(done)
    assert "cannot write /dev/full: No space left on device" in done.err


@pytest.mark.medium
def test_a_process_of_its_own_prints_translations_alone(trained, expected):
    model_dir = str(trained.model_dir)
    done = command_line.run_alone("translate", "--model_dir", model_dir, input=TEXT)
    assert (done.status, done.err) == (0, "")
    assert done.out.split("\n")[:-1] == expected
