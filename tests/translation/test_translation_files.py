"""Windows of a text: counted, spelt, gone on with, and in constant memory."""

import io
import sys
import tracemalloc

import pytest

from t2t_repro.system.errors import UserError
from t2t_repro.translation.translation_files import (
    Done,
    InputText,
    nbest_record,
    open_output,
    scored_record,
    text_record,
    translate_windows,
)
from t2t_repro.translation.translator import MOST_CHARACTERS, ScoredText, Translation

LINES = [f"line {n}" for n in range(23)]


class Upper:
    """Translates by writing in capitals; what holds a 7 is too long."""

    def __init__(self):
        self.windows = []

    def translate_window(self, lines, batch_size, progress, prefixes):
        self.windows.append(len(lines))
        prefixes = prefixes or [""] * len(lines)
        return [
            Translation(prefix + line.upper(), -1.5, len(line), -2.5, cut="7" in line)
            for line, prefix in zip(lines, prefixes, strict=True)
        ]


def translated(lines, done, window=5, most=None, **more):
    """Returns the records of the first windows, and how many windows there were."""
    translator, found = Upper(), []
    settings = {"batch_size": 2, "window": window, "record": text_record} | more
    for text in translate_windows(translator, lines, done, **settings):
        found.append(text)
        if len(found) == most:
            break
    return "".join(found), translator.windows


def input_file(tmp_path, data, name="in.en"):
    path = tmp_path / name
    path.write_bytes(data)
    return path


def standard_input(monkeypatch, file):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(file))


def test_there_is_a_record_for_every_line_in_order():
    done = Done()
    text, windows = translated(iter(LINES), done)
    assert text == "".join(f"LINE {n}\n" for n in range(23))
    assert windows == [5, 5, 5, 5, 3]
    assert done == Done(lines=23, cut=2, first_cut=[8, 18])


@pytest.mark.parametrize("windows", [1, 3, 4])
def test_a_text_goes_on_after_any_window(windows):
    whole, _ = translated(LINES, Done())
    done = Done()
    begin, _ = translated(LINES, done, most=windows)
    assert done.lines == 5 * windows
    rest, _ = translated(LINES, done)
    assert begin + rest == whole
    assert done == Done(lines=23, cut=2, first_cut=[8, 18])


def test_prefixes_stay_beside_their_lines():
    prefixes = [f"{n}:" for n in range(23)]
    done = Done()
    text, _ = translated(LINES, done, most=2, prefixes=prefixes)
    assert text.splitlines() == [f"{n}:LINE {n}" for n in range(10)]
    rest, _ = translated(LINES, done, prefixes=prefixes)
    assert rest.splitlines() == [f"{n}:LINE {n}" for n in range(10, 23)]
    with pytest.raises(UserError, match="--prefix_file ends after line 7, the input"):
        translated(LINES, Done(), prefixes=prefixes[:7])
    with pytest.raises(UserError, match="--prefix_file goes on after line 20, where"):
        translated(LINES[:20], Done(), prefixes=prefixes)


def test_alignments_stand_behind_their_translations():
    def align(sources, targets):
        return [f"{a[5:]}-{b[5:]}" for a, b in zip(sources, targets, strict=True)]

    text, _ = translated(LINES, Done(), align=align)
    assert text.splitlines() == [f"LINE {n} ||| {n}-{n}" for n in range(23)]


def test_reports_of_cut_lines_do_not_grow():
    done = Done()
    done.add(Translation("", 0.0, 0, 0.0, cut=n % 2 == 1) for n in range(3000))
    assert done.first_cut == [2, 4, 6, 8, 10]
    assert done.cut_lines() == (
        "1,500 of 3,000 lines (number 2, 4, 6, 8, 10 and others)"
    )
    done = Done()
    done.add([Translation("", 0.0, 0, 0.0, cut=True)])
    assert done.cut_lines() == "1 of 1 lines (number 1)"


def test_memory_does_not_grow_with_the_text():
    """A list of 60,000 such lines would take 4 MB and more."""
    lines = (f"a line of some words, number {n}" for n in range(60_000))
    settings = {"batch_size": 32, "window": 100, "record": text_record}
    tracemalloc.start()
    try:
        done = Done()
        for _ in translate_windows(Upper(), lines, done, **settings):
            pass
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert done.lines == 60_000
    assert peak < 5e5


def test_records_of_one_translation():
    found = Translation("zwölf Uhr", -0.5, 3, -0.6, cut=False)
    assert text_record(6, found) == "zwölf Uhr\n"
    assert scored_record(6, found) == "-0.500000\tzwölf Uhr\n"


def test_n_best_records_are_those_of_moses():
    others = (ScoredText("zwei ||| drei", -0.75, 1, -0.75),)
    found = Translation("eins", -0.5, 7, -1.0, cut=False, others=others)
    assert nbest_record(6, found) == (
        "6 ||| eins ||| LogProb= -1.000000 ||| -0.500000\n"
        "6 ||| zwei ||| drei ||| LogProb= -0.750000 ||| -0.750000\n"
    )
    blank = Translation("", 0.0, 0, 0.0, cut=False)
    assert nbest_record(2, blank).split(" ||| ") == [
        "2",
        "",
        "LogProb= 0.000000",
        "0.000000\n",
    ]


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"one\ntwo\n", ["one", "two"]),
        (b"\xef\xbb\xbfone\r\n\r\nno end", ["one", "", "no end"]),
    ],
)
def test_a_file_is_counted_and_read(tmp_path, monkeypatch, data, lines):
    path = input_file(tmp_path, data)
    named = InputText(str(path))
    assert named.lines == len(lines)
    assert list(named.read()) == lines
    with open(path, "rb") as file:
        standard_input(monkeypatch, file)
        redirected = InputText("-")
        assert (redirected.lines, redirected.fingerprint) == (
            len(lines),
            named.fingerprint,
        )
        assert list(redirected.read()) == lines


def test_a_pipe_is_read_once(monkeypatch):
    standard_input(monkeypatch, io.BytesIO(b"one\n\ntwo"))
    text = InputText("-")
    assert (text.lines, text.fingerprint) == (None, None)
    assert list(text.read()) == ["one", "", "two"]


def test_fingerprints_differ_where_lines_do(tmp_path):
    texts = [b"", b"\n", b"a\nb\n", b"ab\n", b"a\nb\n\n", b"a\nc\n"]
    found = {InputText(str(input_file(tmp_path, data))).fingerprint for data in texts}
    assert len(found) == len(texts)
    same = [b"a\nb\n", b"a\r\nb", b"\xef\xbb\xbfa\nb\n"]
    assert len({InputText(str(input_file(tmp_path, d))).fingerprint for d in same}) == 1


def test_a_mistake_in_the_last_line_is_found_before_the_first_is_translated(tmp_path):
    path = input_file(tmp_path, b"one\n" * 1000 + b"tw\xff\n")
    with pytest.raises(UserError, match=r"in\.en:1001:3: byte 0xff"):
        InputText(str(path))
    with pytest.raises(UserError, match=r"absent\.en does not exist"):
        list(InputText(str(tmp_path / "absent.en")).read())


def test_a_file_that_changes_meanwhile_is_noticed(tmp_path):
    path = input_file(tmp_path, b"one\ntwo\n")
    text = InputText(str(path))
    lines = text.read()
    assert next(lines) == "one"
    lines = text.read()
    path.write_bytes(b"one\nten\n")
    with pytest.raises(UserError, match=r"in\.en changed while it was translated"):
        list(lines)


def test_of_an_endless_line_only_the_beginning_is_read(tmp_path):
    path = input_file(tmp_path, "ü".encode() * 3_000_000 + b"\r\none\n")
    first, second = InputText(str(path)).read()
    assert MOST_CHARACTERS < len(first) < 5 * MOST_CHARACTERS
    assert set(first) == {"ü"}
    assert second == "one"


def test_an_output_without_an_identity_is_whole_or_not_there(tmp_path):
    path = tmp_path / "out.de"
    with pytest.raises(ZeroDivisionError), open_output(str(path), None) as output:
        output.append("eins\n", {"lines": 1})
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []
    with open_output(str(path), None) as output:
        assert (output.state, output.partial) == ({}, None)
        output.append("eins\n", {"lines": 1})
    assert path.read_text() == "eins\n"
