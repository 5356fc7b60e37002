"""Sentence pairs of a file in any format, chosen by the ending of its name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from t2t_repro.formats.moses import read_moses_zip
from t2t_repro.formats.pair_file import Pair, PairFile
from t2t_repro.formats.po import read_po
from t2t_repro.formats.tables import read_csv, read_jsonl, read_tsv
from t2t_repro.formats.wmt import is_reference_sgm, read_sgm
from t2t_repro.formats.xml_pairs import read_xml
from t2t_repro.system.atomic_file import iterate_lines
from t2t_repro.system.compression import open_bytes, strip_suffix
from t2t_repro.system.errors import UserError

__all__ = [
    "READERS",
    "Pair",
    "find_format",
    "is_reference_sgm",
    "iterate_side",
    "read_pairs",
]

READERS: dict[str, Callable[[PairFile], Iterator[Pair]]] = {
    ".tmx": read_xml,
    ".xlf": read_xml,
    ".xliff": read_xml,
    ".xml": read_xml,
    ".po": read_po,
    ".tsv": read_tsv,
    ".csv": read_csv,
    ".jsonl": read_jsonl,
    ".zip": read_moses_zip,
    ".sgm": read_sgm,
}
"""Reader of each format, by the ending of the file name in lower case."""


def find_format(name: str | os.PathLike[str]) -> str | None:
    """Returns the key in `READERS` of a file name, or None for other files.

    The ending of a compressed file is ignored: `train.tmx.gz` is ".tmx".
    """
    suffix = Path(strip_suffix(Path(name).name)).suffix.lower()
    return suffix if suffix in READERS else None


def read_pairs(
    path: str | os.PathLike[str],
    source_lang: str,
    target_lang: str,
    *,
    reference: str | None = None,
    report: Callable[[str], None] | None = None,
) -> Iterator[Pair]:
    """Yields the sentence pairs of a file in the order of the file.

    Units without text in one of the languages, and unfinished translations, yield
    nothing. Texts are in one line, without inline codes.

    Args:
        path: Path of the file, which may be compressed (.gz, .bz2, .xz, .zst).
        source_lang: Language code; "en" accepts "en-GB" (see `languages.match`).
        target_lang: Language code, see `source_lang`.
        reference: Name of the reference in a file with several; None: the first one.
        report: Function that receives one line with the number of pairs and language
            variants after the last pair.

    Raises:
        UserError: The format is unknown, the file cannot be read, is damaged, or has no
            pair of these languages.
    """
    path = Path(path)
    suffix = find_format(path)
    if suffix is None:
        raise UserError(
            f"{path}: unknown format; the name of a file of pairs must end in "
            f"{', '.join(READERS)}, or one of these with .gz, .bz2, .xz or .zst"
        )
    with open_bytes(path) as stream:
        file = PairFile(path, stream, source_lang, target_lang, reference)
        yield from READERS[suffix](file)
    summary = file.summary()
    if report:
        report(summary)


def iterate_side(
    path: str | os.PathLike[str],
    side: int,
    languages: tuple[str | None, str | None],
    *,
    reference: str | None = None,
    report: Callable[[str], None] | None = None,
) -> Iterator[str]:
    """Yields the lines of a text file, or one side of the pairs of any other format.

    Args:
        path: Path of the file; its name determines whether it is a text file.
        side: 0 for sources, 1 for targets.
        languages: Source and target language, which only files of pairs need.
        reference: See `read_pairs`.
        report: See `read_pairs`; not called for a text file.

    Raises:
        UserError: `read_pairs` or `iterate_lines` fails, or a language is missing.
    """
    if find_format(path) is None:
        yield from iterate_lines(path)
        return
    source_lang, target_lang = languages
    if source_lang is None or target_lang is None:
        raise UserError(
            f"{path} may hold several languages; give --source_lang and --target_lang"
        )
    for pair in read_pairs(
        path, source_lang, target_lang, reference=reference, report=report
    ):
        yield pair[side]
