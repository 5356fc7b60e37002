"""Recognition of files that are not lines of UTF-8 text: formats and encodings."""

import re
from pathlib import PurePath

from t2t_repro.system.errors import UserError

# First bytes of binary files, their kind and the remedy.
_BINARY = {
    b"\x1f\x8b": ("gzip", "add .gz to its name, or decompress it with gunzip"),
    b"BZh": ("bzip2", "add .bz2 to its name, or decompress it with bunzip2"),
    b"\xfd7zXZ\0": ("xz", "add .xz to its name, or decompress it with unxz"),
    b"\x28\xb5\x2f\xfd": (
        "Zstandard",
        "add .zst to its name, or decompress it with unzstd",
    ),
    b"PK\x03\x04": ("ZIP", "extract it with unzip"),
    b"\xd0\xcf\x11\xe0": ("Microsoft Office", "save it as a text file"),
}
# ZIP files with a document, by the ending of their names.
_DOCUMENTS = {
    ".docx": "Word",
    ".odt": "OpenDocument",
    ".xlsx": "Excel",
    ".pptx": "PowerPoint",
    ".epub": "EPUB",
}
# Lines near the beginning of text formats. No sentence consists of such a line.
_MARKS = {
    "SubRip subtitle": rb"\d+:\d\d:\d\d,\d{3} +--> +\d+:\d\d:\d\d,\d{3}",
    "WebVTT subtitle": rb"WEBVTT(\s|$)",
    "SubStation Alpha subtitle": rb"\[Script Info\]\s*$",
    "TMX": rb"<tmx[\s>]|<!DOCTYPE tmx\b",
    "XLIFF": rb"<xliff[\s>]",
    "gettext PO": rb'msgid "',
    "HTML": rb"(?i:<!DOCTYPE html\b|<html[\s>])",
    "WMT XML": rb"<dataset\s",
    "WMT SGM": rb"<(?i:srcset|refset|tstset)\s",
    "RTF": rb"\{\\rtf",
    "PDF": rb"%PDF-\d",
}
# Endings of names by which commands recognize documents and files of pairs.
_ENDINGS = {
    "SubRip subtitle": ".srt",
    "WebVTT subtitle": ".vtt",
    "TMX": ".tmx",
    "XLIFF": ".xlf",
    "gettext PO": ".po",
    "WMT XML": ".xml",
    "WMT SGM": ".sgm",
}
_MARKS_AT_START = {
    name: re.compile(rb"\s*(?:<\?xml[^>]*\?>\s*)?(?:" + mark + rb")")
    for name, mark in _MARKS.items()
}
LAST_MARKED_LINE = 50
"""Number of lines in which to look for a format; comments may precede its marks."""

_BYTE_ORDER_MARKS = {
    b"\xff\xfe\0\0": "UTF-32",
    b"\0\0\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_NOT_1252 = (b"\x81", b"\x8d", b"\x8f", b"\x90", b"\x9d")  # Not in windows-1252.
_UTF8_CHARACTER = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)


def reject_format(line: bytes, number: int, name: str) -> None:
    """Raises UserError if a line shows that a file is not a list of sentences.

    Args:
        line: Line of the file, with its line end, without a byte order mark.
        number: Its number, from 1 to `LAST_MARKED_LINE`.
        name: Name of the file.
    """
    if number == 1:
        for start, (kind, remedy) in _BINARY.items():
            # Text may begin with BZh, but lacks control characters.
            if line.startswith(start) and re.search(rb"[^\t\r\n -~]", line):
                document = _DOCUMENTS.get(PurePath(name).suffix.lower())
                if kind == "ZIP" and document:
                    kind, remedy = document, "save its text as a text file"
                raise UserError(f"{name} is a {kind} file, not text; {remedy}")
    for kind, mark in _MARKS_AT_START.items():
        if mark.match(line):
            remedy = "extract its text, one sentence per line"
            if kind in _ENDINGS:
                remedy += f"; only a file named *{_ENDINGS[kind]} may have this format"
            raise UserError(
                f"{name}:{number}: the format is {kind}, not plain text; {remedy}"
            )


def describe_encoding(line: bytes) -> str:
    """Returns advice about a line that is not UTF-8, with its encoding if it is clear.

    Args:
        line: Line that contains NUL or cannot be decoded.
    """
    encoding = _guess_encoding(line)
    if encoding == "UTF-8" and b"\0" in line:
        return r"delete such characters with tr -d '\000'"
    if encoding == "UTF-8":
        return (
            "other characters of the line are valid, so it is damaged; delete such "
            "bytes with iconv -c -f UTF-8 -t UTF-8 OLD > NEW"
        )
    if encoding is None:
        return (
            "convert the file with iconv -f ENCODING -t UTF-8 OLD > NEW (file -i OLD "
            "guesses the encoding)"
        )
    return (
        f"it looks like {encoding}: convert the file with iconv -f {encoding} -t UTF-8 "
        "OLD > NEW"
    )


def _guess_encoding(line: bytes) -> str | None:
    """Returns iconv's name of a line's encoding; "UTF-8" if damaged, None if unclear.

    Accented letters between ASCII characters are typical of Western European text. The
    encoding of longer runs is unclear.
    """
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if line.startswith(mark):
            return encoding
    if nul := line.count(0):
        # Most characters of Western text have a NUL, the second byte if little-endian.
        if 3 * nul < len(line):
            return "UTF-8"
        return "UTF-16LE" if line[1::2].count(0) > nul / 2 else "UTF-16BE"
    runs = re.findall(rb"[\x80-\xff]+", line)
    rest = _UTF8_CHARACTER.sub(b"", b"".join(runs))
    if sum(map(len, runs)) > 3 * len(rest):
        return "UTF-8"
    is_western = all(len(run) == 1 and run not in _NOT_1252 for run in runs)
    return "WINDOWS-1252" if is_western else None
