"""Reading of UTF-8 text files line by line, and atomic writing of files.

Lines end at U+000A only: `str.splitlines` would also split at U+2028, U+0085 and the
form feed, which occur inside sentences of real corpora.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, zip_longest
from pathlib import Path
from typing import IO, Any, BinaryIO, TextIO, cast

from t2t_repro.system.compression import open_bytes
from t2t_repro.system.durability import sync
from t2t_repro.system.errors import UserError, format_count
from t2t_repro.system.text_formats import (
    LAST_MARKED_LINE,
    describe_encoding,
    reject_format,
)

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_POINTER = b"version https://git-lfs"
# A complete or truncated multi-byte character at the end of a line.
_LAST_CHARACTER = re.compile(rb"[\xc0-\xff][\x80-\xbf]{0,3}\Z")


def iterate_lines(
    path: str | os.PathLike[str],
    *,
    may_be_empty: bool = False,
    most_bytes: int | None = None,
) -> Iterator[str]:
    r"""Yields the lines of a UTF-8 text file, without their line ends.

    Compressed files (`compression.SUFFIXES`) are decompressed. One "\r" before each
    line end (Windows) and a byte order mark at the start are dropped. Only one line is
    in memory at a time.

    Args:
        path: Path of the file. Its last line need not end with a newline.
        may_be_empty: Whether a file without lines is valid.
        most_bytes: Maximum length of a line in bytes; `truncate_lines` truncates
            longer lines.

    Raises:
        UserError: The file is missing, unreadable, a directory, empty, a damaged
            compressed file, not UTF-8, or contains a NUL character.
    """
    empty = True
    for line in decode_lines(_raw_lines(Path(path), most_bytes), str(path)):
        empty = False
        yield line
    if empty and not may_be_empty:
        raise UserError(f"{path} is empty: it needs at least one line of text")


def truncate_lines(file: BinaryIO, most_bytes: int | None) -> Iterator[bytes]:
    """Yields the lines of a stream with their line ends; truncates long lines.

    Args:
        file: Binary stream.
        most_bytes: Maximum length of a line in bytes, which bounds memory. A
            truncated line loses the multi-byte character at its end, which may be
            incomplete. None: no limit.
    """
    if most_bytes is None:
        yield from file
        return
    while line := file.readline(most_bytes):
        if len(line) == most_bytes and not line.endswith(b"\n"):
            line = _LAST_CHARACTER.sub(b"", line)
            while (rest := file.readline(most_bytes)) and not rest.endswith(b"\n"):
                pass
        yield line


def decode_lines(lines: Iterable[bytes], name: str) -> Iterator[str]:
    """Yields decoded lines without line ends, as `iterate_lines` does.

    Args:
        lines: UTF-8 lines with their line ends.
        name: Name of the file in error messages.

    Raises:
        UserError: A line is not UTF-8 or contains a NUL character, the file has a
            format such as SubRip or gzip, or its lines end in CR only.
    """
    for number, line in enumerate(lines, 1):
        if number == 1:
            reject_pointer(line, name)
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if number <= LAST_MARKED_LINE:
            reject_format(line, number, name)
        if number == 1:
            _reject_carriage_returns(line, name)
        if b"\0" in line:
            raise UserError(
                f"{name}:{number}:{line.index(0) + 1}: a NUL character; this is not "
                f"UTF-8 text; {describe_encoding(line)}"
            )
        try:
            yield line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            raise UserError(
                f"{name}:{number}:{error.start + 1}: byte 0x{line[error.start]:02x} "
                f"is not valid UTF-8; {describe_encoding(line)}"
            ) from None


def _reject_carriage_returns(line: bytes, name: str) -> None:
    """Raises UserError if the lines of a file end in CR only."""
    if b"\r" in line.rstrip(b"\r") and not line.endswith(b"\n"):
        raise UserError(
            f"{name}: its lines end in CR only, not in LF; convert the file, for "
            r"example with tr '\r' '\n'"
        )


def reject_pointer(contents: bytes, path: str | os.PathLike[str]) -> None:
    """Raises UserError if a file is only a pointer to its contents in Git LFS."""
    if contents.startswith(_POINTER):
        raise UserError(
            f"{path} is a Git LFS pointer, not the file itself; run git lfs pull in "
            f"{Path(path).parent}, or download the file"
        )


def iterate_pairs(
    source_path: str | os.PathLike[str], target_path: str | os.PathLike[str]
) -> Iterator[tuple[str, str]]:
    """Yields the pairs (source line, target line) of two parallel files.

    Raises:
        UserError: `iterate_lines` fails, or the files have different numbers of lines
            (raised at the end of the shorter file).
    """
    sources, targets = iterate_lines(source_path), iterate_lines(target_path)
    return pair_lines(sources, targets, (str(source_path), str(target_path)))


def pair_lines(
    sources: Iterator[str], targets: Iterator[str], names: tuple[str, str]
) -> Iterator[tuple[str, str]]:
    """Yields the pairs of the lines of two files, given with their names.

    Raises UserError if the files have different numbers of lines.
    """
    for number, (source, target) in enumerate(zip_longest(sources, targets)):
        if source is None or target is None:
            longer = number + 1 + sum(1 for _ in chain(sources, targets))
            counts = (number, longer) if source is None else (longer, number)
            raise UserError(
                f"{names[0]} has {format_count(counts[0], 'line')} but {names[1]} has "
                f"{counts[1]:,}: line n of one must correspond to line n of the other"
            )
        yield source, target


def read_lines(path: str | os.PathLike[str]) -> list[str]:
    """Returns the lines of a UTF-8 text file as `iterate_lines` yields them."""
    return list(iterate_lines(path))


def write_text_atomically(path: str | os.PathLike[str], text: str) -> None:
    """Replaces a file's contents with a text atomically (see `new_text_file`)."""
    with new_text_file(path) as file:
        file.write(text)


def write_bytes_atomically(path: str | os.PathLike[str], contents: bytes) -> None:
    """Replaces a file's contents with bytes atomically (see `new_text_file`)."""
    with _new_file(path, "wb") as file:
        file.write(contents)


def is_special(path: str | os.PathLike[str]) -> bool:
    """Returns whether a path is a device or pipe, which cannot be replaced."""
    return os.path.exists(path) and not os.path.isfile(path)


@contextmanager
def new_text_file(path: str | os.PathLike[str]) -> Iterator[TextIO]:
    """Opens a UTF-8 file for atomic writing.

    The text goes to a temporary file in the same folder, which is renamed to `path`
    when the block ends; a crash leaves `path` unchanged. Devices and pipes are written
    directly.

    Raises:
        UserError: The folder is missing or not writable, or the disk is full.
    """
    with _new_file(path, "w", encoding="utf-8", newline="") as file:
        yield cast(TextIO, file)


@contextmanager
def _new_file(
    path: str | os.PathLike[str], mode: str, **options: Any
) -> Iterator[IO[Any]]:
    """Opens a file for atomic writing in the given mode (see `new_text_file`)."""
    final = Path(path).resolve()  # Replaces the target of a link, not the link.
    special = is_special(path)
    aside = final.with_name(f".{final.name}.{os.getpid()}.tmp")
    opened = final if special else aside
    try:
        with open(opened, mode, **options) as file:
            yield file
            file.flush()
            if not special:
                os.fsync(file.fileno())
        if not special:
            os.replace(aside, final)
            sync(final.parent)
    except OSError as error:
        # A closed pipe, and errors of the block about other files, stay as they are.
        own = (None, str(opened), str(aside), str(final.parent))
        is_own = error.filename in own
        if isinstance(error, BrokenPipeError) or not is_own:
            raise
        raise UserError(f"cannot write {path}: {error.strerror}") from error
    finally:
        aside.unlink(missing_ok=True)


def _raw_lines(path: Path, most_bytes: int | None) -> Iterator[bytes]:
    """Yields a file's lines with their line ends; decompresses compressed files."""
    try:
        with open_bytes(path) as file:
            yield from truncate_lines(file, most_bytes)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
