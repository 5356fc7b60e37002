"""Pairs of gettext PO files.

Source: GNU gettext manual, "The Format of PO Files" and "Plural forms". The reader
streams and checks that strings end, in contrast to polib 1.2.
"""

from __future__ import annotations

import gettext
import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import NamedTuple

from t2t_repro.formats.pair_file import Pair, PairFile

_CHARSET = re.compile(rb"Content-Type:[^\"\n]*charset=([\w.:-]+)")
_MOST_HEADER_LINES = 200
_STRING = re.compile(
    r'(msgctxt|msgid|msgid_plural|msgstr(?:\[\d+\])?)?\s*"((?:[^"\\]|\\.)*)"'
)
_ESCAPE = re.compile(r"\\(.)")
_ESCAPES = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))


class _Entry(NamedTuple):
    """Entry of a PO file: its strings by keyword, and the line of the first one."""

    strings: dict[str, str]
    line: int
    is_fuzzy: bool


def read_po(file: PairFile) -> Iterator[Pair]:
    """Yields the pairs of translated entries, one for each plural form.

    The form for the number 1 is paired with msgid, other forms with msgid_plural. Fuzzy
    and obsolete entries are skipped. The language in the header must be one of the
    wanted ones; without it, the file is assumed to be a translation into the target
    language.

    Raises UserError if a line is malformed or cannot be decoded.
    """
    language, singular = None, "msgstr[0]"
    for entry in _iterate_entries(file, _decode(file)):
        strings = entry.strings
        if not strings["msgid"]:
            header = dict(re.findall(r"(\S+): *(.*)", strings.get("msgstr", "")))
            language = header.get("Language") or None
            singular = f"msgstr[{_find_singular(header.get('Plural-Forms', ''))}]"
            continue
        for key, target in strings.items():
            if key.startswith("msgstr"):
                is_plural = key not in ("msgstr", singular)
                source = strings.get("msgid_plural" if is_plural else "msgid", "")
                texts = (source, "" if entry.is_fuzzy else target)
                place = f"{key}, line {entry.line}"
                if pair := file.make_pair((None, language), texts, place):
                    yield pair


def _find_singular(plural_forms: str) -> int:
    """Returns the index of the form for the number 1; -1 if there is only one form."""
    match = re.search(r"nplurals *= *(\d+) *; *plural *=([^;]*)", plural_forms)
    if match is None:
        return 0
    try:
        return -1 if match[1] == "1" else gettext.c2py(match[2])(1)
    except (ValueError, ZeroDivisionError):
        return 0


def _decode(file: PairFile) -> Iterator[str]:
    """Yields the lines in the encoding that the header declares, else UTF-8."""
    head = list(islice(file.file, _MOST_HEADER_LINES))
    match = _CHARSET.search(b"".join(head))
    # Templates have the placeholder CHARSET.
    charset = match[1].decode() if match and match[1] != b"CHARSET" else "utf-8"
    if charset.lower().replace("-", "") == "utf8":
        charset = "utf-8-sig"
    for number, line in enumerate(chain(head, file.file), 1):
        try:
            yield line.decode(charset)
        except (UnicodeError, LookupError) as error:
            raise file.error(
                f"line {number}",
                f"cannot be decoded ({error}); correct the charset of Content-Type, or "
                "convert the file with msgconv -t UTF-8",
            ) from None


def _iterate_entries(file: PairFile, lines: Iterable[str]) -> Iterator[_Entry]:
    """Yields the entries that are not obsolete, including the header."""
    strings: dict[str, str] = {}
    key, first, is_fuzzy = "", 0, False
    for number, line in enumerate(map(str.strip, lines), 1):
        match = _STRING.fullmatch(line)
        if line and not match and not line.startswith("#"):
            raise file.error(f"line {number}", "not valid in a PO file, or incomplete")
        if _is_complete(strings) and line.startswith(("#", "msgctxt", "msgid")):
            yield _Entry(strings, first, is_fuzzy)
            strings, key, is_fuzzy = {}, "", False
        if line.startswith("#~"):
            is_fuzzy = False  # The flag was that of an obsolete entry.
        elif line.startswith("#,"):
            is_fuzzy |= "fuzzy" in re.split(r"[,\s]+", line)
        elif match:
            key = match[1] or key
            is_first = key in ("msgctxt", "msgid") or "msgid" in strings
            if not key or match[1] in strings or not is_first:
                raise file.error(f"line {number}", "a string at the wrong place")
            first = first if strings else number
            text = _ESCAPE.sub(lambda m: _ESCAPES.get(m[1], m[1]), match[2])
            strings[key] = strings.get(key, "") + text
    if _is_complete(strings):
        yield _Entry(strings, first, is_fuzzy)
    elif strings:
        raise file.error(f"line {first}", "the entry has no msgstr; is the file whole?")


def _is_complete(strings: dict[str, str]) -> bool:
    return "msgstr" in strings or "msgstr[0]" in strings
