"""The progress of a translation: a bar on a terminal, lines in a log."""

import io
import re
import sys

import pytest

from t2t_repro.command_line import progress_bar


class Terminal(io.StringIO):
    """Keeps what is drawn."""

    def isatty(self):
        return True


def shown(monkeypatch, stream, *, total=200, shown=True):
    monkeypatch.setattr(sys, "stderr", stream)
    with progress_bar.progress_bar(total, 100, shown) as update:
        update(0, 0)
        update(50, 500)
        update(25, 100)
    return stream.getvalue()


def test_a_terminal_shows_lines_speed_and_the_time_left(monkeypatch):
    text = shown(monkeypatch, Terminal())
    last = text.rstrip().split("\r")[-1]
    assert last.startswith(" 88%")
    assert " 175/200 [" in last
    assert re.search(r"<\d\d:\d\d,", last)
    assert re.search(r", [\d,]+ tokens/s\]", last)
    assert text.endswith("\n")


def test_without_a_total_no_time_is_promised(monkeypatch):
    text = shown(monkeypatch, Terminal(), total=None)
    assert "175 lines [" in text
    assert "<" not in text


def test_short_work_leaves_no_line_in_a_log(monkeypatch):
    assert shown(monkeypatch, io.StringIO()) == ""


def test_long_work_leaves_lines_in_a_log(monkeypatch):
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
