"""Tests of reading, checking and atomically writing text files."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re

import pytest

from t2t_repro.system.atomic_file import (
    decode_lines,
    is_special,
    iterate_lines,
    iterate_pairs,
    new_text_file,
    read_lines,
    truncate_lines,
    write_text_atomically,
)
from t2t_repro.system.errors import UserError


def _file(tmp_path, data: bytes, name: str = "text.en"):
    path = tmp_path / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"one\ntwo\n", ["one", "two"]),
        (b"one\ntwo", ["one", "two"]),
        (b"one\r\ntwo\r\n", ["one", "two"]),
        (b"one\r\r\n", ["one\r"]),
        (b"\n", [""]),
        (b"one\n\ntwo\n\n", ["one", "", "two", ""]),
        (b"\xef\xbb\xbfone\n", ["one"]),
        ("a\u2028b\x0cc\x85d\n".encode(), ["a\u2028b\x0cc\x85d"]),
        ("Grüße 🙂\n".encode(), ["Grüße 🙂"]),
    ],
)
def test_lines_end_at_newlines_only(tmp_path, data, lines):
    assert read_lines(_file(tmp_path, data)) == lines


def test_decompresses_a_gz_file(tmp_path):
    path = _file(tmp_path, gzip.compress("ä\nb\r\n".encode()), "text.en.gz")
    assert read_lines(path) == ["ä", "b"]


def test_rejects_a_truncated_gz_file(tmp_path):
    whole = gzip.compress(b"".join(b"%d\n" % (n * n) for n in range(5000)))
    path = _file(tmp_path, whole[: len(whole) // 2], "text.en.gz")
    with pytest.raises(UserError, match="not a complete gzip file"):
        read_lines(path)


def test_rejects_a_gz_name_without_gz_contents(tmp_path):
    with pytest.raises(UserError, match="not a complete gzip file"):
        read_lines(_file(tmp_path, b"plain text\n", "text.en.gz"))


def test_rejects_an_empty_file(tmp_path):
    with pytest.raises(UserError, match=r"text\.en is empty"):
        read_lines(_file(tmp_path, b""))


def test_accepts_an_empty_file_on_request(tmp_path):
    assert list(iterate_lines(_file(tmp_path, b""), may_be_empty=True)) == []


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"1234567", b"1234567"),
        (b"123456789" * 9, b"12345678"),
        # The limit of eight bytes falls inside or right after a multi-byte character.
        ("1234567ü".encode() * 9, b"1234567"),
        ("123456üü".encode(), b"123456"),
        ("1234🙂🙂".encode(), b"1234"),
        ("12345🙂🙂".encode(), b"12345"),
    ],
)
def test_truncates_a_long_line(line, expected, end):
    stream = io.BytesIO(b"first\n" + line + end)
    first, second, *rest = truncate_lines(stream, 8)
    assert (first, rest) == (b"first\n", [])
    assert second.rstrip() == expected


def test_keeps_the_lines_after_a_long_one():
    stream = io.BytesIO(b"123456789\n" * 3 + b"\n1\n12345678\n")
    assert list(truncate_lines(stream, 8)) == [b"12345678"] * 3 + [
        b"\n",
        b"1\n",
        b"12345678",
    ]


def test_rejects_invalid_bytes_in_a_truncated_line(tmp_path):
    path = _file(tmp_path, b"12\xff456789\n")
    with pytest.raises(UserError, match=r"text\.en:1:3: byte 0xff"):
        list(iterate_lines(path, most_bytes=8))


def test_reports_line_and_byte_of_invalid_utf8(tmp_path):
    with pytest.raises(UserError, match=r"text\.en:2:3: byte 0xff"):
        read_lines(_file(tmp_path, b"good\nab\xffcd\n"))


def test_reports_line_and_byte_of_a_nul_character(tmp_path):
    with pytest.raises(UserError, match=r"text\.en:3:2: a NUL"):
        read_lines(_file(tmp_path, b"a\nb\nc\0d\n"))


@pytest.mark.parametrize(
    ("contents", "words"),
    [
        (
            gzip.compress(b"one\n", mtime=0),
            "a gzip file, not text; add .gz to its name",
        ),
        (bz2.compress(b"one\n"), "a bzip2 file"),
        (lzma.compress(b"one\n"), "a xz file"),
        (b"PK\x03\x04\x14\0", "a ZIP file"),
        (b"%PDF-1.7\n%\xe2\xe3\n", "text:1: the format is PDF, not plain"),
        (
            b"1\r\n00:00:01,500 --> 00:00:04,000\r\nHi.\r\n",
            "text:2: the format is SubRip",
        ),
        (b"\xef\xbb\xbfWEBVTT - film\n\n", "text:1: the format is WebVTT"),
        (b"[Script Info]\r\n", "SubStation Alpha"),
        (
            b'<?xml version="1.0"?>\n\n <tmx version="1.4">\n',
            "text:3: the format is TMX",
        ),
        (b"<?xml version='1.0'?><xliff version='2.0'>", "text:1: the format is XLIFF"),
        (b'# German\n#, fuzzy\nmsgid ""\n', "text:3: the format is gettext PO"),
        (b"<!doctype html>\n", "the format is HTML"),
        (b"{\\rtf1\\ansi\n", "the format is RTF"),
        (b"one\rtwo\r", "its lines end in CR only"),
        (b"\xef\xbb\xbfone\rtwo", "its lines end in CR only"),
    ],
)
def test_names_the_format_of_other_files(tmp_path, contents, words):
    (tmp_path / "text").write_bytes(contents)
    with pytest.raises(UserError, match=re.escape(words)):
        read_lines(tmp_path / "text")


def test_names_the_document_in_a_zip_file(tmp_path):
    (tmp_path / "letter.docx").write_bytes(b"PK\x03\x04\x14\0")
    with pytest.raises(UserError, match=r"letter\.docx is a Word file, not text"):
        read_lines(tmp_path / "letter.docx")


GERMAN = "Die Äpfel kosten 3 €, für fünf Stück."


@pytest.mark.parametrize(
    ("contents", "words"),
    [
        (GERMAN.encode("utf-16"), "iconv -f UTF-16 -t UTF-8 OLD > NEW"),
        (GERMAN.encode("utf-16-be"), "iconv -f UTF-16BE -t UTF-8 OLD > NEW"),
        (GERMAN.encode("utf-16-le"), "iconv -f UTF-16LE -t UTF-8 OLD > NEW"),
        (GERMAN.encode("cp1252"), "iconv -f WINDOWS-1252 -t UTF-8 OLD > NEW"),
        ("Чай стоит три евро.".encode("cp1251"), "iconv -f ENCODING -t UTF-8 OLD"),
        ("紅茶は三百円です。".encode("shift_jis"), "iconv -f ENCODING -t UTF-8 OLD"),
        (GERMAN.encode() + b"\xfc", "iconv -c -f UTF-8 -t UTF-8 OLD > NEW"),
        (GERMAN.encode() + b"\0", r"delete such characters with tr -d '\000'"),
    ],
)
def test_names_the_encoding_of_other_text(tmp_path, contents, words):
    with pytest.raises(UserError, match=re.escape(words)):
        read_lines(_file(tmp_path, contents))


@pytest.mark.parametrize(
    "text",
    [
        *("BZh is a word\n", "PK\n", "a\rb\n", "one\r", "WEBVTTs\n", "See <tmx>.\n"),
        *("00:01:02 is a time\n", "msgid is a keyword\n", "%PDF- is a mark\n"),
    ],
)
def test_text_may_resemble_other_files(tmp_path, text):
    (tmp_path / "text").write_bytes(text.encode())
    assert read_lines(tmp_path / "text") == [text.removesuffix("\n").removesuffix("\r")]


def test_rejects_a_missing_file_and_a_directory(tmp_path):
    with pytest.raises(UserError, match=r"absent\.en does not exist"):
        read_lines(tmp_path / "absent.en")
    with pytest.raises(UserError, match="is a directory"):
        read_lines(tmp_path)


def test_iterate_pairs_joins_files_line_by_line(tmp_path):
    source = _file(tmp_path, b"one\ntwo\n", "a.en")
    target = _file(tmp_path, b"eins\r\nzwei", "a.de")
    assert list(iterate_pairs(source, target)) == [("one", "eins"), ("two", "zwei")]


def test_reports_both_counts_of_unequal_files(tmp_path):
    source = _file(tmp_path, b"one\ntwo\nthree\n", "a.en")
    target = _file(tmp_path, b"eins\n", "a.de")
    with pytest.raises(UserError, match=r"a\.en has 3 lines but .*a\.de has 1:"):
        list(iterate_pairs(source, target))
    with pytest.raises(UserError, match=r"a\.de has 1 line but .*a\.en has 3:"):
        list(iterate_pairs(target, source))


def test_a_written_file_holds_the_text_and_leaves_no_other_file(tmp_path):
    path = tmp_path / "out.txt"
    write_text_atomically(path, "alt\n")
    write_text_atomically(path, "ä\r\nb\n")
    assert path.read_bytes() == "ä\r\nb\n".encode()
    assert os.listdir(tmp_path) == ["out.txt"]


def test_a_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "out.txt"
    write_text_atomically(path, "old")

    def full_disk(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(UserError, match="No space left on device"):
        write_text_atomically(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_rejects_a_missing_folder(tmp_path):
    with pytest.raises(UserError, match="cannot write"):
        write_text_atomically(tmp_path / "absent" / "out.txt", "text")


def test_decodes_a_stream_that_may_be_empty():
    lines = [b"\xef\xbb\xbfone\r\n", b"\n", b"zw\xc3\xb6lf\x0cx"]
    assert list(decode_lines(lines, "input")) == ["one", "", "zwölf\x0cx"]
    assert list(decode_lines([], "input")) == []
    with pytest.raises(UserError, match=r"^input:1:2: byte 0xff is not valid UTF-8"):
        list(decode_lines([b"a\xff\n"], "input"))


def test_a_file_is_renamed_when_it_is_complete(tmp_path):
    path = tmp_path / "out.txt"
    with new_text_file(path) as file:
        file.write("ä\r\n")
        assert not path.exists()
    assert path.read_bytes() == "ä\r\n".encode()
    with pytest.raises(ZeroDivisionError), new_text_file(path) as file:
        file.write("half")
        raise ZeroDivisionError
    assert path.read_bytes() == "ä\r\n".encode()
    assert os.listdir(tmp_path) == ["out.txt"]


def test_writes_to_the_target_of_a_link(tmp_path):
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    write_text_atomically(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"
    assert sorted(os.listdir(tmp_path)) == ["link.txt", "real.txt"]


@pytest.mark.skipif(not os.path.exists("/dev/null"), reason="there is no /dev/null")
def test_writes_to_a_device_directly():
    assert is_special("/dev/null")
    write_text_atomically("/dev/null", "text")
    assert not os.path.isfile("/dev/null")


def test_regular_and_missing_files_are_not_special(tmp_path):
    assert not is_special(_file(tmp_path, b"one\n"))
    assert not is_special(tmp_path / "absent")
