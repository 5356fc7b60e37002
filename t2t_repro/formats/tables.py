"""Pairs of tables: tab-separated values, comma-separated values and JSON lines."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from t2t_repro.formats.languages import find_pair, match
from t2t_repro.formats.pair_file import Pair, PairFile
from t2t_repro.system.atomic_file import decode_lines

_SOURCES = ("source", "src")
_TARGETS = ("target", "tgt")
_UNKNOWN = (None, None)


def read_tsv(file: PairFile) -> Iterator[Pair]:
    """Yields the pairs of tab-separated values; quotes belong to the text.

    If the first line names both languages, or `source` and `target`, these columns are
    read; otherwise, the first two.

    Raises UserError if a line has too few columns.
    """
    lines = enumerate(decode_lines(file.file, str(file.path)), 1)
    return _read_rows(file, ((number, line.split("\t")) for number, line in lines))


def read_csv(file: PairFile) -> Iterator[Pair]:
    """Yields the pairs of comma-separated values (RFC 4180), columns as in `read_tsv`.

    Raises UserError if a line has too few columns or wrong quotes.
    """
    lines = decode_lines(file.file, str(file.path))
    reader = csv.reader((f"{line}\n" for line in lines), strict=True)
    rows = ((reader.line_num, row) for row in reader)
    try:
        yield from _read_rows(file, rows)
    except csv.Error as error:
        raise file.error(
            f"line {reader.line_num}",
            f'not valid CSV ({error}); a quote within quotes is written ""',
        ) from None


def read_jsonl(file: PairFile) -> Iterator[Pair]:
    """Yields the pairs of JSON objects, one per line.

    The keys of an object, or of its object `translation`, are language codes, or
    `source` and `target`.

    Raises UserError if a line is not such an object.
    """
    for number, line in enumerate(decode_lines(file.file, str(file.path)), 1):
        if not line.strip():
            continue
        place = f"line {number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise file.error(place, f"not valid JSON ({error})") from None
        texts = _find_texts(file, place, record)
        keys = tuple(texts)
        codes: tuple[str | None, ...] = keys
        if file.choose(keys) is None:
            columns = find_columns(keys, file.source_lang, file.target_lang)
            if columns:
                texts = {keys[i]: texts[keys[i]] for i in columns}
                codes = _UNKNOWN
        if pair := file.make_pair(codes, list(texts.values()), place):
            yield pair


def find_columns(
    names: Sequence[str], source_lang: str, target_lang: str
) -> tuple[int, int] | None:
    """Returns the indices of the columns of source and target.

    Args:
        names: Names of the columns: language codes, or `source` and `target`.
        source_lang: Wanted source language.
        target_lang: Wanted target language.

    Returns:
        None if the names do not include both.
    """
    codes = find_pair(source_lang, target_lang, names)
    if codes:
        return codes
    lowered = [name.strip().lower() for name in names]
    found = [
        next((i for i, name in enumerate(lowered) if name in wanted), None)
        for wanted in (_SOURCES, _TARGETS)
    ]
    source, target = found
    return None if source is None or target is None else (source, target)


def _read_rows(file: PairFile, rows: Iterable[tuple[int, list[str]]]) -> Iterator[Pair]:
    """Yields the pairs of numbered rows, the first of which may be a header."""
    columns: tuple[int, int] | None = None
    codes: tuple[str | None, ...] = _UNKNOWN
    for number, row in rows:
        if not any(row):
            continue
        if columns is None:
            columns = find_columns(row, file.source_lang, file.target_lang)
            if columns:
                names = tuple(row[column] for column in columns)
                codes = names if file.choose(names) == (0, 1) else _UNKNOWN
                continue
            columns = (0, 1)
            for lang in (file.source_lang, file.target_lang):
                if any(match(lang, name) == 2 for name in row):
                    raise file.error(
                        f"line {number}", f"a header with {lang} but not both languages"
                    )
        if len(row) <= max(columns):
            raise file.error(
                f"line {number}",
                f"{len(row)} of at least {max(columns) + 1} columns; remove the line, "
                "or correct its separators",
            )
        texts = [row[column] for column in columns]
        if pair := file.make_pair(codes, texts, f"line {number}"):
            yield pair


def _find_texts(file: PairFile, place: str, record: Any) -> dict[str, str]:
    """Returns the texts of an object by their keys; UserError if they are invalid."""
    if isinstance(record, dict) and isinstance(record.get("translation"), dict):
        record = record["translation"]
    if not isinstance(record, dict):
        raise file.error(place, 'not an object such as {"en": "...", "de": "..."}')
    texts = {key: value for key, value in record.items() if isinstance(value, str)}
    for key, text in texts.items():
        if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
            raise file.error(place, f"{key} contains NUL or half of a surrogate pair")
    return texts
