"""Tests of input texts, output records, resuming and memory use."""

import io
import sys
import tracemalloc

import pytest

from t2t_repro.system.errors import UserError
from t2t_repro.texts.division import MOST_TEXT_CHARACTERS
from t2t_repro.texts.translation import BLANK, Hypothesis, Translation
from t2t_repro.translation.translation_files import (
    InputText,
    TranslationState,
    nbest_record,
    open_output,
    scored_record,
    text_record,
    translate_windows,
)

LINES = [f"line {n}" for n in range(23)]


def best(text):
    return Hypothesis(text, -1.5, len(text), -2.5)


class Upper:
    """Fake translator that upper-cases lines; those with a 7 count as too long."""

    def __init__(self):
        self.windows = []

    def translate_window(self, lines, batch_size, progress, prefixes):
        self.windows.append(len(lines))
        prefixes = prefixes or [""] * len(lines)
        return [
            Translation((best(prefix + line.upper()),), cut="7" in line)
            for line, prefix in zip(lines, prefixes, strict=True)
        ]


def translated(lines, state, window=5, most=None, **more):
    """Returns the records of the first windows, and the sizes of these windows."""
    translator, records = Upper(), []
    settings = {"batch_size": 2, "window": window, "record": text_record} | more
    for text in translate_windows(translator, lines, state, **settings):
        records.append(text)
        if len(records) == most:
            break
    return "".join(records), translator.windows


def input_file(tmp_path, data, name="in.en"):
    path = tmp_path / name
    path.write_bytes(data)
    return path


def standard_input(monkeypatch, file):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(file))


def test_there_is_a_record_for_every_line_in_order():
    state = TranslationState()
    text, windows = translated(iter(LINES), state)
    assert text == "".join(f"LINE {n}\n" for n in range(23))
    assert windows == [5, 5, 5, 5, 3]
    assert state == TranslationState(lines=23, cut=2, first_cut=[8, 18])


@pytest.mark.parametrize("windows", [1, 3, 4])
def test_translation_resumes_after_any_window(windows):
    whole, _ = translated(LINES, TranslationState())
    state = TranslationState()
    begin, _ = translated(LINES, state, most=windows)
    assert state.lines == 5 * windows
    rest, _ = translated(LINES, state)
    assert begin + rest == whole
    assert state == TranslationState(lines=23, cut=2, first_cut=[8, 18])


def test_prefixes_belong_to_their_lines():
    prefixes = [f"{n}:" for n in range(23)]
    state = TranslationState()
    text, _ = translated(LINES, state, most=2, prefixes=prefixes)
    assert text.splitlines() == [f"{n}:LINE {n}" for n in range(10)]
    rest, _ = translated(LINES, state, prefixes=prefixes)
    assert rest.splitlines() == [f"{n}:LINE {n}" for n in range(10, 23)]
    with pytest.raises(UserError, match="--prefix_file has only 7 lines, fewer than"):
        translated(LINES, TranslationState(), prefixes=prefixes[:7])
    with pytest.raises(UserError, match="--prefix_file has more lines than the input"):
        translated(LINES[:20], TranslationState(), prefixes=prefixes)


def test_alignments_follow_their_translations():
    def align(lines, translations):
        return [
            Translation((each.best._replace(alignment=((int(line[5:]), 2),)),))
            for line, each in zip(lines, translations, strict=True)
        ]

    text, _ = translated(LINES, TranslationState(), align=align)
    assert text.splitlines() == [f"LINE {n} ||| {n}-2" for n in range(23)]


def test_at_most_five_cut_lines_are_listed():
    state = TranslationState()
    state.add(Translation((BLANK,), cut=n % 2 == 1) for n in range(3000))
    assert state.first_cut == [2, 4, 6, 8, 10]
    assert state.summary("cut") == (
        "1,500 of 3,000 lines (number 2, 4, 6, 8, 10 and others)"
    )
    state = TranslationState()
    state.add([Translation((BLANK,), cut=True)])
    state.add([Translation((BLANK,), divided=True, several=True)])
    assert state.summary("cut") == "1 of 2 lines (number 1)"
    for name in ("divided", "several"):
        assert state.summary(name) == "1 of 2 lines (number 2)"
    part = TranslationState()
    part.add([Translation((BLANK,), cut=True)], first_line=2000)
    assert part.summary("cut") == "1 of 1 lines (number 2,001)"


def test_memory_does_not_grow_with_the_text():
    """A list of these 60,000 lines would take more than 4 MB."""
    lines = (f"a line of some words, number {n}" for n in range(60_000))
    settings = {"batch_size": 32, "window": 100, "record": text_record}
    tracemalloc.start()
    try:
        state = TranslationState()
        for _ in translate_windows(Upper(), lines, state, **settings):
            pass
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert state.lines == 60_000
    assert peak < 5e5


def test_text_and_score_records():
    records = Translation((Hypothesis("zwölf Uhr", -0.5, 3, -0.6),))
    assert text_record(6, records) == "zwölf Uhr\n"
    assert scored_record(6, records) == "-0.500000\tzwölf Uhr\n"


def test_nbest_records_have_the_format_of_moses():
    one = Hypothesis("eins", -0.5, 7, -1.0, alignment=((0, 0), (2, 1)))
    records = Translation((one, Hypothesis("zwei ||| drei", -0.75, 1, -0.75)))
    assert nbest_record(6, records) == (
        "6 ||| eins ||| LogProb= -1.000000 ||| -0.500000 ||| 0-0 2-1\n"
        "6 ||| zwei ||| drei ||| LogProb= -0.750000 ||| -0.750000\n"
    )
    blank = Translation((BLANK,))
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
def test_counts_and_reads_the_lines_of_a_file(tmp_path, monkeypatch, data, lines):
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


def test_reads_a_pipe_once(monkeypatch):
    standard_input(monkeypatch, io.BytesIO(b"one\n\ntwo"))
    text = InputText("-")
    assert (text.lines, text.fingerprint) == (None, None)
    assert list(text.read()) == ["one", "", "two"]


def test_fingerprints_depend_only_on_the_lines(tmp_path):
    texts = [b"", b"\n", b"a\nb\n", b"ab\n", b"a\nb\n\n", b"a\nc\n"]
    records = {InputText(str(input_file(tmp_path, data))).fingerprint for data in texts}
    assert len(records) == len(texts)
    same = [b"a\nb\n", b"a\r\nb", b"\xef\xbb\xbfa\nb\n"]
    assert len({InputText(str(input_file(tmp_path, d))).fingerprint for d in same}) == 1


def test_invalid_lines_are_reported_before_the_translation(tmp_path):
    path = input_file(tmp_path, b"one\n" * 1000 + b"tw\xff\n")
    with pytest.raises(UserError, match=r"in\.en:1001:3: byte 0xff"):
        InputText(str(path))
    with pytest.raises(UserError, match=r"absent\.en does not exist"):
        list(InputText(str(tmp_path / "absent.en")).read())


def test_rejects_a_file_that_changes_during_translation(tmp_path):
    path = input_file(tmp_path, b"one\ntwo\n")
    text = InputText(str(path))
    lines = text.read()
    assert next(lines) == "one"
    lines = text.read()
    path.write_bytes(b"one\nten\n")
    with pytest.raises(UserError, match=r"in\.en changed while it was translated"):
        list(lines)


def test_reads_only_the_beginning_of_an_endless_line(tmp_path):
    most = MOST_TEXT_CHARACTERS
    path = input_file(tmp_path, "ü".encode() * 3 * most + b"\r\none\n")
    first, second = InputText(str(path)).read()
    assert most < len(first) < 3 * most
    assert set(first) == {"ü"}
    assert second == "one"


def test_output_without_an_identity_is_written_atomically(tmp_path):
    path = tmp_path / "out.de"
    with pytest.raises(ZeroDivisionError), open_output(str(path), None) as output:
        output.append("eins\n", {"lines": 1})
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []
    with open_output(str(path), None) as output:
        assert (output.state, output.partial) == ({}, None)
        output.append("eins\n", {"lines": 1})
    assert path.read_text() == "eins\n"
