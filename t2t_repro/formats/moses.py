"""Pairs of zip archives in Moses format, such as those of OPUS."""

from __future__ import annotations

import zipfile
from collections import defaultdict
from collections.abc import Iterator
from itertools import zip_longest
from typing import BinaryIO, cast

from t2t_repro.formats.pair_file import Pair, PairFile
from t2t_repro.system.atomic_file import decode_lines
from t2t_repro.system.damage import DAMAGED_ZIP
from t2t_repro.system.errors import UserError


def read_moses_zip(file: PairFile) -> Iterator[Pair]:
    """Yields the pairs of the parallel files `NAME.LANGUAGE` in a zip archive.

    Pairs of files with several names are read in the order of the names. Lines without
    text on one side yield nothing.

    Raises UserError if the archive is damaged, has no files of the languages, or files
    of a name have different numbers of lines.
    """
    try:
        with zipfile.ZipFile(file.file) as archive:
            for stem, languages in _find_files(file, archive):
                names = [f"{stem}.{language}" for language in languages]
                with archive.open(names[0]) as first, archive.open(names[1]) as second:
                    streams = (cast(BinaryIO, first), cast(BinaryIO, second))
                    yield from _read_lines(file, names, languages, streams)
    except (*DAMAGED_ZIP, OSError) as error:
        raise UserError(
            f"{file.path} is not a complete zip archive ({error or 'cut off'}); "
            "download it again"
        ) from None
    except (NotImplementedError, RuntimeError) as error:  # Methods and passwords.
        raise UserError(f"{file.path}: {error}; extract it with unzip") from None


def _find_files(
    file: PairFile, archive: zipfile.ZipFile
) -> list[tuple[str, tuple[str, str]]]:
    """Returns the name and both endings of each pair of files."""
    endings = defaultdict(list)
    for name in sorted(archive.namelist()):
        stem, _, ending = name.rpartition(".")
        endings[stem].append(ending)
    found = []
    for stem, languages in endings.items():
        choice = file.choose(tuple(languages))
        if choice:
            found.append((stem, (languages[choice[0]], languages[choice[1]])))
    if not found:
        raise UserError(
            f"{file.path} has no files NAME.{file.source_lang} and "
            f"NAME.{file.target_lang}; its files are "
            f"{', '.join(archive.namelist()[:8]) or 'none'}"
        )
    return found


def _read_lines(
    file: PairFile,
    names: list[str],
    languages: tuple[str, str],
    streams: tuple[BinaryIO, BinaryIO],
) -> Iterator[Pair]:
    """Yields the pairs of the lines of two files in the archive."""
    sides = [
        decode_lines(stream, f"{file.path}/{name}")
        for stream, name in zip(streams, names, strict=True)
    ]
    for number, texts in enumerate(zip_longest(*sides), 1):
        if None in texts:
            raise UserError(
                f"{file.path}: {names[texts.index(None)]} ends before line {number} of "
                "the other file; they must be parallel"
            )
        if pair := file.make_pair(languages, texts, f"{names[0]}, line {number}"):
            yield pair
