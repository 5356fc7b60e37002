"""Documents of translators, which are read, translated and written back."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from t2t_repro.formats.documents.document import Document, Request
from t2t_repro.formats.documents.po import read_po
from t2t_repro.formats.documents.strings import read_json, read_properties
from t2t_repro.formats.documents.subtitles import read_srt, read_vtt
from t2t_repro.formats.documents.tables import read_csv, read_jsonl, read_tsv
from t2t_repro.formats.documents.tmx import read_tmx
from t2t_repro.formats.documents.xliff import read_xliff
from t2t_repro.system.errors import UserError

__all__ = ["FORMATS", "Document", "Request", "find_format", "read_document"]

FORMATS: dict[str, Callable[[bytes, Request], Document]] = {
    "xliff": read_xliff,
    "po": read_po,
    "srt": read_srt,
    "vtt": read_vtt,
    "tmx": read_tmx,
    "csv": read_csv,
    "tsv": read_tsv,
    "jsonl": read_jsonl,
    "json": read_json,
    "properties": read_properties,
}
"""Function of each format that reads the bytes of a document."""

_SUFFIXES = {".pot": "po", ".xlf": "xliff"}


def find_format(name: str | os.PathLike[str]) -> str | None:
    """Returns the key in `FORMATS` of a file name, or None for other files."""
    suffix = Path(name).suffix.lower()
    name = _SUFFIXES.get(suffix, suffix.removeprefix("."))
    return name if name in FORMATS else None


def read_document(name: str, data: bytes, request: Request) -> Document:
    """Reads a document.

    Args:
        name: Key in `FORMATS`.
        data: Bytes of the document.
        request: Path of the document and settings.

    Raises:
        UserError: The document is damaged, in another encoding or in another language.
    """
    try:
        return FORMATS[name](data, request)
    except RecursionError:
        raise UserError(f"{request.path} is too deeply nested") from None
