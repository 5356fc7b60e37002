r"""Messages of gettext (PO files), whose empty and fuzzy translations are filled.

A new translation is marked as fuzzy, so that no program shows it before a person has
checked it. Source: manual of GNU gettext, "The Format of PO Files".
"""

from __future__ import annotations

import gettext
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from t2t_repro.formats.documents.document import (
    Document,
    Edit,
    Request,
    Segment,
    Text,
    make_segment,
)

_CHARSET = re.compile(rb"Content-Type:[^\n]*?charset=([\w.:-]+)")
_LINE = re.compile(
    r"[ \t]*(?:(?P<keyword>msg(?:ctxt|id_plural|id|str(?:\[\d+\])?))[ \t]*)?"
    r'"(?P<string>(?:[^"\\]|\\.)*)"[ \t]*'
)
_ESCAPE = re.compile(r"\\(.)")
_CHARACTERS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v"}
_CHARACTERS |= {"a": "\a", "\\": "\\", '"': '"'}
_ESCAPES = str.maketrans({value: f"\\{key}" for key, value in _CHARACTERS.items()})
_PLURALS = re.compile(r"Plural-Forms:\s*nplurals\s*=\s*(\d+)\s*;\s*plural\s*=([^;\n]+)")


class _String(NamedTuple):
    """A string of a message: its value, and the span of its quoted lines."""

    value: str
    start: int
    end: int


@dataclass
class _Entry:
    """A message. `start` is the place where flags belong, `flags` that of its flags."""

    start: int | None = None
    flags: re.Match[str] | None = None
    strings: dict[str, _String] = field(default_factory=dict)

    @property
    def name(self) -> str:
        context = self.strings.get("msgctxt")
        name = self.strings["msgid"].value
        return f"{context.value}|{name}" if context else name

    @property
    def is_fuzzy(self) -> bool:
        return self.flags is not None and "fuzzy" in re.split(r"[#,\s]+", self.flags[0])


def read_po(data: bytes, request: Request) -> Document:
    """Reads messages of gettext; see `FORMATS`."""
    charset = _CHARSET.search(data)
    name = charset[1].decode() if charset else "utf-8"
    text = Text(data, request.path, "utf-8" if name == "CHARSET" else name)
    entries = list(_find_entries(text))
    header = next((each for each in entries if not each.strings["msgid"].value), None)
    plurals = _PLURALS.search(header.strings["msgstr"].value) if header else None
    forms = _choose_forms(text, plurals) if plurals else [True, False]
    segments: list[Segment] = []
    for entry in entries:
        if entry is not header:
            segments += _segments(text, entry, forms, request.retranslate)
    return Document(text, segments)


def _choose_forms(text: Text, plurals: re.Match[str]) -> list[bool]:
    """Returns for each plural form whether its source is the singular.

    It is, if the form serves the number 1 and not only one form exists.
    """
    count = int(plurals[1])
    try:
        one = gettext.c2py(plurals[2].strip())(1)
    except (ValueError, ZeroDivisionError):
        raise text.error(
            0, f"invalid plural expression {plurals[2].strip()} in Plural-Forms"
        ) from None
    return [count > 1 and form == one for form in range(count)]


def _segments(
    text: Text, entry: _Entry, forms: list[bool], retranslate: bool
) -> Iterator[Segment]:
    """Yields the segments of the translations that an entry needs."""
    strings = entry.strings
    sources = {"msgstr": strings["msgid"].value}
    if plural := strings.get("msgid_plural"):
        singular = strings["msgid"].value
        sources = {
            f"msgstr[{form}]": singular if is_singular else plural.value
            for form, is_singular in enumerate(forms)
        }
    last = list(strings.values())[-1].end
    for key, source in sources.items():
        target = strings.get(key)
        if target and target.value and not (entry.is_fuzzy or retranslate):
            continue
        span, before = (last, last), f"{text.newline}{key} "
        if target:
            span, before = (target.start, target.end), ""

        def write(
            new: str, span: tuple[int, int] = span, before: str = before
        ) -> Iterable[Edit]:
            yield Edit(*span, before + _quote(new, text.newline))
            if not entry.is_fuzzy:
                yield _mark_fuzzy(entry, text.newline)

        name = entry.name + key.removeprefix("msgstr")
        yield make_segment(text, name, [source], write)


def _mark_fuzzy(entry: _Entry, newline: str) -> Edit:
    if entry.flags:
        place = entry.flags.start() + len("#,")
        return Edit(place, place, " fuzzy,")
    assert entry.start is not None
    return Edit(entry.start, entry.start, f"#, fuzzy{newline}")


def _find_entries(text: Text) -> Iterator[_Entry]:
    """Yields the messages that are not obsolete.

    Raises:
        UserError: A line has another syntax, or a message is incomplete.
    """
    entry, key = _Entry(), ""
    for line in re.finditer(r"[^\n]*(?:\n|\Z)", text.text):
        content = line[0].strip()
        if content.startswith("#~"):
            yield from _finish(text, entry)
            entry, key = _Entry(), ""
        elif content.startswith("#") or not content:
            if entry.strings and content:
                yield from _finish(text, entry)
                entry = _Entry()
            key = ""
            if content.startswith("#,"):
                entry.flags = re.compile(r"#,[^\r\n]*").search(text.text, line.start())
            elif content.startswith("#|") and entry.start is None:
                entry.start = line.start()
        else:
            end = line.start() + len(line[0].rstrip("\r\n"))
            match = _LINE.fullmatch(text.text, line.start(), end)
            if match is None or not (match["keyword"] or key):
                raise text.error(line.start(), "not a line of a PO file; repair it")
            if match["keyword"]:
                key = match["keyword"]
                if key in ("msgctxt", "msgid") and (
                    "msgid" in entry.strings or key in entry.strings
                ):
                    yield from _finish(text, entry)
                    entry = _Entry()
                if key in entry.strings:
                    raise text.error(line.start(), f"a second {key}; delete one")
                if entry.start is None:
                    entry.start = line.start()
                entry.strings[key] = _String("", match.start("string") - 1, 0)
            before = entry.strings[key]
            value = before.value + _ESCAPE.sub(_find_character, match["string"])
            entry.strings[key] = _String(value, before.start, match.end("string") + 1)
    yield from _finish(text, entry)


def _finish(text: Text, entry: _Entry) -> Iterator[_Entry]:
    """Yields a complete message; none for comments without one."""
    if not entry.strings:
        return
    keys = set(entry.strings)
    plural = "msgstr[0]" if "msgid_plural" in keys else "msgstr"
    if not {"msgid", plural} <= keys:
        place = next(iter(entry.strings.values())).start
        raise text.error(place, f"the message has no {plural}; the file is damaged")
    yield entry


def _find_character(match: re.Match[str]) -> str:
    return _CHARACTERS.get(match[1], match[0])


def _quote(value: str, newline: str) -> str:
    """Returns a string as lines in quotes, one for each line of the text."""
    lines = re.findall(r"[^\n]*\n|[^\n]+\Z", value) or [""]
    quoted = [f'"{line.translate(_ESCAPES)}"' for line in lines]
    return newline.join(quoted if len(quoted) == 1 else ['""', *quoted])
