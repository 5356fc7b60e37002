"""Entries of gettext PO files, with their places.

Source: GNU gettext manual, "The Format of PO Files" and "Plural forms". The parser
checks that strings end, in contrast to polib 1.2.
"""

from __future__ import annotations

import gettext
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from t2t_repro.system.errors import UserError

_CHARSET = re.compile(rb"Content-Type:[^\"\n]*charset=([\w.:-]+)")
_LINE = re.compile(
    r"(?P<keyword>msg(?:ctxt|id_plural|id|str(?:\[\d+\])?))?\s*"
    r'"(?P<string>(?:[^"\\]|\\.)*)"'
)
_ESCAPE = re.compile(r"\\(.)")
_FIRST = ("msgctxt", "msgid")  # Keywords that begin an entry.
CHARACTERS = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))
"""Control characters by the letter of their escape."""
_PLURALS = re.compile(r"Plural-Forms:\s*nplurals\s*=\s*(\d+)\s*;\s*plural\s*=([^;\n]+)")


class String(NamedTuple):
    """A string of an entry: its value, and the span of its quoted lines."""

    value: str
    start: int
    end: int


@dataclass
class Entry:
    """A message that is not obsolete.

    Attributes:
        line: Number of the line of the first string.
        start: Place of the first line after the comments and flags.
        flags: Place of the comment with the flags; None if there is none.
        is_fuzzy: Whether the translation is to be checked.
        strings: Strings by keyword, such as "msgid" or "msgstr[0]".
    """

    line: int = 0
    start: int | None = None
    flags: int | None = None
    is_fuzzy: bool = False
    strings: dict[str, String] = field(default_factory=dict)


def find_charset(data: bytes) -> str:
    """Returns the encoding that the header in these bytes declares, else UTF-8."""
    match = _CHARSET.search(data)
    # Templates have the placeholder CHARSET.
    return match[1].decode() if match and match[1] != b"CHARSET" else "utf-8"


def find_singular_forms(header: str, path: Path) -> list[bool]:
    """Returns for each plural form whether its source is the singular.

    It is, if the form serves the number 1 and not only one form exists.

    Args:
        header: Value of the header entry.
        path: Path of the file.

    Raises:
        UserError: The plural expression is not valid.
    """
    match = _PLURALS.search(header)
    if match is None:
        return [True, False]
    count, plural = int(match[1]), match[2].strip()
    try:
        one = gettext.c2py(plural)(1)
    except (ValueError, ZeroDivisionError):
        raise UserError(
            f"{path}: invalid plural expression {plural} in Plural-Forms"
        ) from None
    return [count > 1 and form == one for form in range(count)]


def find_entries(lines: Iterable[str], path: Path) -> Iterator[Entry]:
    """Yields the entries that are not obsolete, including the header.

    Args:
        lines: Lines with their ends.
        path: Path of the file.

    Raises:
        UserError: A line has another syntax, or an entry is incomplete.
    """
    entry, key, place = Entry(), "", 0
    for number, line in enumerate(lines, 1):
        content = line.strip()
        start, place = place + line.find(content), place + len(line)
        match = _LINE.fullmatch(content)
        if content and not match and not content.startswith("#"):
            raise UserError(f"{path}:{number}: not valid in a PO file, or incomplete")
        keyword = match["keyword"] if match else None
        if _is_complete(entry) and (content[:1] == "#" or keyword in _FIRST):
            yield entry
            entry, key = Entry(), ""
        if content.startswith("#~"):
            entry, key = Entry(), ""
        elif content.startswith("#,"):
            entry.flags = start
            entry.is_fuzzy = "fuzzy" in re.split(r"[#,\s]+", content)
        elif content.startswith("#|") and entry.start is None:
            entry.start = start
        elif match:
            key = keyword or key
            is_ordered = key in _FIRST or "msgid" in entry.strings
            if not key or keyword in entry.strings or not is_ordered:
                raise UserError(f"{path}:{number}: a string at the wrong place")
            entry.line = entry.line or number
            entry.start = start if entry.start is None else entry.start
            low, high = (start + place for place in match.span("string"))
            before = entry.strings.get(key, String("", low - 1, 0))
            value = before.value + _ESCAPE.sub(_find_character, match["string"])
            entry.strings[key] = String(value, before.start, high + 1)
    if _is_complete(entry):
        yield entry
    elif entry.strings:
        raise UserError(
            f"{path}:{entry.line}: the entry has no msgstr; is the file whole?"
        )


def _is_complete(entry: Entry) -> bool:
    return "msgstr" in entry.strings or "msgstr[0]" in entry.strings


def _find_character(match: re.Match[str]) -> str:
    return CHARACTERS.get(match[1], match[1])
