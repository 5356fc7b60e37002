"""Text files as a translator needs them: strict about bytes, plain about lines.

A corpus is a pair of files that agree line by line, so nothing here may invent
or lose a line. Lines end at U+000A only: `str.splitlines` would also cut at
U+2028, U+0085 and the form feed, which real corpora hold inside a sentence.
"""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import IO, Any, BinaryIO, TextIO, cast

from t2t_repro.system.errors import UserError

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# A character of several bytes, or its beginning, at the end of a line.
_LAST_CHARACTER = re.compile(rb"[\xc0-\xff][\x80-\xbf]{0,3}\Z")


def iterate_lines(
    path: str | os.PathLike[str],
    *,
    may_be_empty: bool = False,
    most_bytes: int | None = None,
) -> Iterator[str]:
    r"""Yields the lines of a UTF-8 text file, without their line ends.

    A name that ends in `.gz` is decompressed. One "\r" before each line end is
    dropped (files from Windows), and so is a byte order mark at the very start:
    editors write it unasked, it is no part of the text, and left in place it
    would glue itself to the first word of the first sentence. Empty lines stay.
    One line is in memory at a time, so corpora of any size can be read.

    Args:
        path: the file to read.
        may_be_empty: a file without a line is no mistake.
        most_bytes: of a longer line only the beginning is read, as `bounded_lines`.

    Yields:
        One string per line; a missing line end after the last one is allowed.

    Raises:
        UserError: the file is missing, unreadable, a directory, empty, a damaged
            gzip file, not UTF-8, or holds a NUL character.
    """
    empty = True
    for line in decode_lines(_raw_lines(Path(path), most_bytes), str(path)):
        empty = False
        yield line
    if empty and not may_be_empty:
        raise UserError(f"{path} is empty: it needs at least one line of text.")


def bounded_lines(file: BinaryIO, most_bytes: int | None) -> Iterator[bytes]:
    """Yields the lines of a stream, so that no line can exhaust memory.

    Args:
        file: the stream.
        most_bytes: of a line that is longer, only as many bytes are kept, less the
            character at which they end; the rest is passed over unread. None keeps
            all lines whole.

    Yields:
        The bytes of each line, its line end included unless it was cut off.
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
    """Yields the lines of a stream of bytes as `iterate_lines` does those of a file.

    Args:
        lines: the bytes of each line, its line end included.
        name: what the stream is called in an error.

    Yields:
        One string per line; none for an empty stream.

    Raises:
        UserError: a line is not UTF-8 or holds a NUL character.
    """
    for number, line in enumerate(lines, 1):
        if number == 1:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if b"\0" in line:
            raise UserError(
                f"{name}:{number}:{line.index(0) + 1}: a NUL character; this is not "
                "UTF-8 text (convert UTF-16, for example with iconv -t UTF-8)."
            )
        try:
            yield line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            raise UserError(
                f"{name}:{number}:{error.start + 1}: byte 0x{line[error.start]:02x} "
                "is not valid UTF-8; convert the file, for example with "
                "iconv -t UTF-8."
            ) from None


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

    Args:
        path: the file to write; its folder must exist.
        text: the whole contents, written as UTF-8 with line ends as they are.

    Raises:
        UserError: as `new_text_file`.
    """
    with new_text_file(path) as file:
        file.write(text)


def write_bytes_atomically(path: str | os.PathLike[str], contents: bytes) -> None:
    """Writes a file that is either the old one or the whole new one.

    Args:
        path: the file to write; its folder must exist.
        contents: the file's bytes.

    Raises:
        UserError: as `new_text_file`.
    """
    with _new_file(path, "wb") as file:
        file.write(contents)


def is_special(path: str | os.PathLike[str]) -> bool:
    """Says whether a path is a device or a pipe, which is written to as it is."""
    return os.path.exists(path) and not os.path.isfile(path)


@contextmanager
def new_text_file(path: str | os.PathLike[str]) -> Iterator[TextIO]:
    """Opens a text file whose name is that of the old one or of the whole new one.

    The text goes into a temporary file in the same folder, is forced to disk and
    then takes the name in one step, so a crash never leaves half a file. A device
    or a pipe (`/dev/null`, `/dev/stdout`) is written to as it is.

    Args:
        path: the file to write; its folder must exist.

    Yields:
        The open file: UTF-8, line ends as they are.

    Raises:
        UserError: the folder is missing or not writable, or the disk is full.
    """
    with _new_file(path, "w", encoding="utf-8", newline="") as file:
        yield cast(TextIO, file)


@contextmanager
def _new_file(
    path: str | os.PathLike[str],
    mode: str,
    encoding: str | None = None,
    newline: str | None = None,
) -> Iterator[IO[Any]]:
    """Opens a file that takes its name when it is whole; see `new_text_file`."""
    final = Path(path).resolve()  # A link stays, what it leads to is replaced.
    special = is_special(path)
    aside = final.with_name(f".{final.name}.{os.getpid()}.tmp")
    opened = final if special else aside
    try:
        with open(opened, mode, encoding=encoding, newline=newline) as file:
            yield file
            file.flush()
            if not special:
                os.fsync(file.fileno())
        if not special:
            os.replace(aside, final)
    except BrokenPipeError:
        raise
    except OSError as error:
        # Whoever writes may meet another file that fails.
        if error.filename not in (None, str(opened), str(aside)):
            raise
        raise UserError(f"cannot write {path}: {error.strerror}.") from error
    finally:
        aside.unlink(missing_ok=True)


def _raw_lines(path: Path, most_bytes: int | None) -> Iterator[bytes]:
    """Yields the file's lines with their line ends, decompressed if it is `.gz`."""
    if path.is_dir():
        raise UserError(f"{path} is a directory; a text file is needed here.")
    try:
        opener = gzip.open if path.name.endswith(".gz") else open
        with opener(path, "rb") as file:
            yield from bounded_lines(cast(BinaryIO, file), most_bytes)
    except FileNotFoundError:
        raise UserError(f"{path} does not exist.") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError(
            f"{path} is not a whole gzip file ({error}); copy or download it again."
        ) from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}.") from error
