"""Tests of the progress bar on a terminal and in a log file."""

import io
import re
import sys

import pytest

from t2t_repro.command_line import progress_bar


class Terminal(io.StringIO):
    """A terminal that records its output."""

    def isatty(self):
        return True


def shown(monkeypatch, stream, *, total=200, shown=True):
    monkeypatch.setattr(sys, "stderr", stream)
    with progress_bar.progress_bar(total, 100, shown) as update:
        update(0, 0)
        update(50, 500)
        update(25, 100)
    return stream.getvalue()


def test_a_terminal_shows_lines_speed_and_remaining_time(monkeypatch):
    text = shown(monkeypatch, Terminal())
    last = text.rstrip().split("\r")[-1]
    assert last.startswith(" 88%")
    assert " 175/200 [" in last
    assert re.search(r"<\d\d:\d\d,", last)
    assert re.search(r", [\d,]+ tokens/s\]", last)
    assert text.endswith("\n")


def test_without_a_total_shows_no_remaining_time(monkeypatch):
    text = shown(monkeypatch, Terminal(), total=None)
    assert "175 lines [" in text
    assert "<" not in text


def test_short_runs_write_no_lines_to_a_log(monkeypatch):
    assert shown(monkeypatch, io.StringIO()) == ""


def test_long_runs_write_lines_to_a_log(monkeypatch):
    monkeypatch.setattr(progress_bar, "_LOG_SECONDS", 0.0)
    lines = shown(monkeypatch, io.StringIO()).splitlines()
    assert len(lines) >= 2
    for line in lines:
        assert "\r" not in line
        assert line.endswith("]")
    assert "175/200" in lines[-1]
    assert "tokens/s" in lines[-1]


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()])
def test_hidden_progress_writes_nothing(monkeypatch, stream):
    assert shown(monkeypatch, stream, shown=False) == ""
