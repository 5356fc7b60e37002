"""Text files as a translator needs them: strict about bytes, plain about lines.

A corpus is a pair of files that agree line by line, so nothing here may invent
or lose a line. Lines end at U+000A only: `str.splitlines` would also cut at
U+2028, U+0085 and the form feed, which real corpora hold inside a sentence.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from t2t_repro.errors import UserError

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def iterate_lines(path: str | os.PathLike[str]) -> Iterator[str]:
    r"""Yields the lines of a UTF-8 text file, without their line ends.

    A name that ends in `.gz` is decompressed. One "\r" before each line end is
    dropped (files from Windows), and so is a byte order mark at the very start:
    editors write it unasked, it is no part of the text, and left in place it
    would glue itself to the first word of the first sentence. Empty lines stay.
    One line is in memory at a time, so corpora of any size can be read.

    Args:
        path: the file to read.

    Yields:
        One string per line; a missing line end after the last one is allowed.

    Raises:
        UserError: the file is missing, unreadable, a directory, empty, a damaged
            gzip file, not UTF-8, or holds a NUL character.
    """
    number = 0
    for number, line in enumerate(_raw_lines(Path(path)), 1):
        if number == 1:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if b"\0" in line:
            raise UserError(
                f"{path}:{number}:{line.index(0) + 1}: a NUL character; this is not "
                "UTF-8 text (convert UTF-16, for example with iconv -t UTF-8)."
            )
        try:
            yield line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            raise UserError(
                f"{path}:{number}:{error.start + 1}: byte 0x{line[error.start]:02x} "
                "is not valid UTF-8; convert the file, for example with "
                "iconv -t UTF-8."
            ) from None
    if not number:
        raise UserError(f"{path} is empty: it needs at least one line of text.")


def iterate_pairs(
    source_path: str | os.PathLike[str], target_path: str | os.PathLike[str]
) -> Iterator[tuple[str, str]]:
    """Yields the line pairs of two files that translate each other line by line.

    Args:
        source_path: the sentences to translate.
        target_path: their translations.

    Yields:
        (source line, target line) for every line.

    Raises:
        UserError: as `iterate_lines`, or the files differ in their number of
            lines; that shows at the end of the shorter file.
    """
    sources, targets = iterate_lines(source_path), iterate_lines(target_path)
    for number, (source, target) in enumerate(zip_longest(sources, targets)):
        if source is None or target is None:
            rest = sum(1 for _ in (targets if source is None else sources))
            counts = [number, number + 1 + rest]
            if target is None:
                counts.reverse()
            raise UserError(
                f"{source_path} has {counts[0]:,} lines but {target_path} has "
                f"{counts[1]:,}: line n of one must translate line n of the other."
            )
        yield source, target


def read_lines(path: str | os.PathLike[str]) -> list[str]:
    """Reads a whole UTF-8 text file into a list of lines.

    Args:
        path: the file to read, as `iterate_lines` does.

    Returns:
        The lines, one string each.

    Raises:
        UserError: as `iterate_lines`.
    """
    return list(iterate_lines(path))


def read_pairs(
    source_path: str | os.PathLike[str], target_path: str | os.PathLike[str]
) -> list[tuple[str, str]]:
    """Reads two whole files that translate each other line by line.

    Args:
        source_path: the sentences to translate.
        target_path: their translations.

    Returns:
        (source line, target line) for every line.

    Raises:
        UserError: as `iterate_pairs`.
    """
    return list(iterate_pairs(source_path, target_path))


def write_text_atomically(path: str | os.PathLike[str], text: str) -> None:
    """Writes a text file that is either the old one or the whole new one.

    The text goes into a temporary file in the same folder, is forced to disk and
    then takes the name in one step, so a crash never leaves half a file.

    Args:
        path: the file to write; its folder must exist.
        text: the whole contents, written as UTF-8 with line ends as they are.

    Raises:
        UserError: the folder is missing or not writable, or the disk is full.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(text.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}.") from error
    finally:
        temporary.unlink(missing_ok=True)


def _raw_lines(path: Path) -> Iterator[bytes]:
    """Yields the file's lines with their line ends, decompressed if it is `.gz`."""
    if path.is_dir():
        raise UserError(f"{path} is a directory; a text file is needed here.")
    try:
        opener = gzip.open if path.name.endswith(".gz") else open
        with opener(path, "rb") as file:
            yield from file
    except FileNotFoundError:
        raise UserError(f"{path} does not exist.") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError(
            f"{path} is not a whole gzip file ({error}); copy or download it again."
        ) from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}.") from error
