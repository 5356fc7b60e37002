"""Tables with a column of texts and a column of translations: CSV, TSV and JSON lines.

Empty translations are filled, and a missing column is added. The columns are named
"source" and "target", "src" and "tgt", or by language codes; a table without such names
has the text in the first column and the translation in the second. Source of CSV: RFC
4180; in TSV, quotes are text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from t2t_repro.formats.documents.document import (
    Document,
    Edit,
    Request,
    Text,
    make_segment,
)
from t2t_repro.formats.documents.strings import check_json, find_strings, json_writer
from t2t_repro.formats.languages import match

_NAMES = {"source": "target", "src": "tgt"}
_CODE = re.compile(r"[A-Za-z]{2,3}(?:[-_]\w+)?")


class _Cell(NamedTuple):
    """A cell of a table: its span and its text."""

    start: int
    end: int
    value: str


class _Columns(NamedTuple):
    """Indices of the columns; `target` is None if `name` is to be added."""

    source: int
    target: int | None
    name: str


def read_csv(data: bytes, request: Request) -> Document:
    """Reads CSV, with commas or semicolons; see `FORMATS`."""
    text = Text(data, request.path)
    first = text.text.partition("\n")[0]
    delimiter = max(",;", key=first.count)
    cell = rf'"(?:[^"]|"")*"|[^"{delimiter}\r\n][^{delimiter}\r\n]*|'

    def write(value: str, place: str) -> str:
        if place.startswith('"') or re.search(rf'[{delimiter}"\r\n]', value):
            value = '"' + value.replace('"', '""') + '"'
        return value

    return _read_table(text, request, delimiter, cell, write)


def read_tsv(data: bytes, request: Request) -> Document:
    """Reads values separated by tabs, without quotes; see `FORMATS`."""
    text = Text(data, request.path)
    return _read_table(text, request, "\t", r"[^\t\r\n]*", lambda value, _: value)


def _read_table(
    text: Text,
    request: Request,
    delimiter: str,
    cell: str,
    write: Callable[[str, str], str],
) -> Document:
    """Reads a table.

    Args:
        text: Text of the table.
        request: Settings.
        delimiter: Character between cells.
        cell: Regular expression of a cell.
        write: Function from a text, and the cell that it replaces or follows, to a
            cell.
    """
    rows = list(_find_rows(text, delimiter, cell))
    named = _find_columns([each.value for each in rows[0]], request) if rows else None
    width = len(rows[0]) if rows else 0
    columns = named or _Columns(0, 1 if width > 1 else None, "")
    segments, edits = [], []
    for number, row in enumerate(rows):
        if len(row) != width:
            raise text.error(
                row[0].start, f"{len(row)} cells, but {width} in line 1; repair the row"
            )
        if number == 0 and named:
            if columns.target is None:
                end = row[-1].end
                edits.append(Edit(end, end, delimiter + columns.name))
            continue
        source = row[columns.source]
        if columns.target is None:
            place = _Cell(row[-1].end, row[-1].end, "")
        else:
            place = row[columns.target]
        if place.value.strip() and not request.retranslate:
            continue
        before = delimiter if columns.target is None else ""
        written = text.text[(source if before else place).start :][:1]

        def edit(
            new: str, place: _Cell = place, before: str = before, like: str = written
        ) -> list[Edit]:
            return [Edit(place.start, place.end, before + write(new, like))]

        name = f"row {number + 1}"
        segments.append(make_segment(text, name, [source.value], edit))
    return Document(text, segments, edits)


def _find_rows(text: Text, delimiter: str, cell: str) -> Iterator[list[_Cell]]:
    """Yields the rows that are not empty."""
    pattern, ending = re.compile(cell), re.compile(rf"{delimiter}|\r?\n|\Z")
    row: list[_Cell] = []
    place = 0
    while place < len(text.text) or row:
        match = pattern.match(text.text, place)
        end = match and ending.match(text.text, match.end())
        if not match or not end:
            raise text.error(place, "a cell is damaged; repair its quotes")
        value = match[0]
        if '"' in cell and value.startswith('"'):
            value = value[1:-1].replace('""', '"')
        row.append(_Cell(*match.span(), value))
        place = end.end()
        if end[0] != delimiter:
            if len(row) > 1 or row[0].value:
                yield row
            row = []
            if not end[0]:
                return


def _find_columns(names: Sequence[str], request: Request) -> _Columns | None:
    """Returns the columns with these names; None if no name is that of a source."""

    def find(name: str, language: str | None) -> int | None:
        fits = [
            each.strip().lower() == name
            or (_CODE.fullmatch(each.strip()) and language and match(language, each))
            for each in names
        ]
        return next((n for n, each in enumerate(fits) if each), None)

    for source_name, target_name in _NAMES.items():
        source = find(source_name, request.source_lang)
        if source is not None:
            target = find(target_name, request.target_lang)
            is_code = names[source].strip().lower() != source_name
            name = (request.target_lang if is_code else None) or target_name
            return _Columns(source, target, name)
    return None


def read_jsonl(data: bytes, request: Request) -> Document:
    """Reads JSON lines, with flat keys or the key "translation"; see `FORMATS`."""
    text = Text(data, request.path)
    write = json_writer(text)
    space = " " if '": ' in text.text else ""
    segments = []
    place = 0
    for number, line in enumerate(text.text.splitlines(keepends=True), 1):
        start, place = place, place + len(line)
        if not line.strip():
            continue
        check_json(text, start, line)
        strings = [
            each
            for each in find_strings(line)
            if len(each[0]) == 1 or (len(each[0]) == 2 and each[0][0] == "translation")
        ]
        columns = _find_columns([str(path[-1]) for path, *_ in strings], request)
        if columns is None:
            raise text.error(
                start, f'no text with the key "source" or "{request.source_lang}"'
            )
        cells = [
            _Cell(start + low, start + high, json.loads(line[low:high]) or "")
            for _, low, high in strings
        ]
        source = cells[columns.source]
        if columns.target is None:
            target = _Cell(source.end, source.end, "")
            before = f",{space}{json.dumps(columns.name)}:{space}"
        else:
            target, before = cells[columns.target], ""
        if target.value.strip() and not request.retranslate:
            continue

        def edit(new: str, target: _Cell = target, before: str = before) -> list[Edit]:
            return [Edit(target.start, target.end, f'{before}"{write(new)}"')]

        name = f"line {number}"
        segments.append(make_segment(text, name, [source.value], edit))
    return Document(text, segments)
