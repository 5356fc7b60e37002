r"""Messages of gettext (PO files), whose empty and fuzzy translations are filled.

A new translation is marked as fuzzy, so that no program shows it before a person has
checked it. Source: manual of GNU gettext, "The Format of PO Files".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from t2t_repro.formats.documents.document import (
    Document,
    Edit,
    Request,
    Segment,
    Text,
    make_segment,
)
from t2t_repro.formats.po_entries import (
    CHARACTERS,
    Entry,
    find_charset,
    find_entries,
    find_singular_forms,
)

_ESCAPES = str.maketrans(
    {value: f"\\{key}" for key, value in CHARACTERS.items()}
    | {"\\": "\\\\", '"': '\\"'}
)


def read_po(data: bytes, request: Request) -> Document:
    """Reads messages of gettext; see `FORMATS`."""
    text = Text(data, request.path, find_charset(data))
    lines = (match[0] for match in re.finditer(r"[^\n]*(?:\n|\Z)", text.text))
    forms = [True, False]
    segments: list[Segment] = []
    for entry in find_entries(lines, request.path):
        if entry.strings["msgid"].value:
            segments += _segments(text, entry, forms, request.retranslate)
        elif header := entry.strings.get("msgstr"):
            forms = find_singular_forms(header.value, request.path)
    return Document(text, segments)


def _segments(
    text: Text, entry: Entry, forms: list[bool], retranslate: bool
) -> Iterator[Segment]:
    """Yields the segments of the translations that an entry needs."""
    strings = entry.strings
    singular = strings["msgid"].value
    sources = {"msgstr": singular}
    if plural := strings.get("msgid_plural"):
        sources = {
            f"msgstr[{form}]": singular if is_singular else plural.value
            for form, is_singular in enumerate(forms)
        }
    context = strings.get("msgctxt")
    message = f"{context.value}|{singular}" if context else singular
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

        name = message + key.removeprefix("msgstr")
        yield make_segment(text, name, [source], write)


def _mark_fuzzy(entry: Entry, newline: str) -> Edit:
    if entry.flags is not None:
        place = entry.flags + len("#,")
        return Edit(place, place, " fuzzy,")
    assert entry.start is not None
    return Edit(entry.start, entry.start, f"#, fuzzy{newline}")


def _quote(value: str, newline: str) -> str:
    """Returns a string as lines in quotes, one for each line of the text."""
    lines = re.findall(r"[^\n]*\n|[^\n]+\Z", value) or [""]
    quoted = [f'"{line.translate(_ESCAPES)}"' for line in lines]
    return newline.join(quoted if len(quoted) == 1 else ['""', *quoted])
