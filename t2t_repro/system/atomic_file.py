"""Text files of a corpus: UTF-8, and no line lost or invented.

Lines end at U+000A only: `str.splitlines` would also cut at U+2028, U+0085 and the
form feed, which real corpora hold inside a sentence.
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
    dropped (files from Windows), and so is a byte order mark at the start, which would
    become part of the first word. One line is in memory at a time.

    Args:
        path: the file; the end of its last line may be missing.
        may_be_empty: whether a file without a line is allowed.
        most_bytes: longer lines are cut, as by `bounded_lines`.

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
    """Yields the lines of a stream with their line ends, long ones cut.

    Args:
        file: the stream.
        most_bytes: of a longer line only as many bytes are kept, less the character
            that they would cut in two, so that no line can exhaust memory. None keeps
            all lines whole.
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
    """Decodes lines with their line ends as `iterate_lines` does.

    Raises:
        UserError: a line is not UTF-8 or holds a NUL character; `name` stands for the
            file.
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
    """Yields (source line, target line) of two files.

    Raises:
        UserError: as `iterate_lines`, or one file has fewer lines; that shows at its
            end.
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
    """Returns all lines that `iterate_lines` yields."""
    return list(iterate_lines(path))


def write_text_atomically(path: str | os.PathLike[str], text: str) -> None:
    """Writes a text as `new_text_file` does."""
    with new_text_file(path) as file:
        file.write(text)


def write_bytes_atomically(path: str | os.PathLike[str], contents: bytes) -> None:
    """Writes bytes as `new_text_file` writes text."""
    with _new_file(path, "wb") as file:
        file.write(contents)


def is_special(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a device or a pipe, which is written to as it is."""
    return os.path.exists(path) and not os.path.isfile(path)


@contextmanager
def new_text_file(path: str | os.PathLike[str]) -> Iterator[TextIO]:
    """Opens a UTF-8 file that gets its name when it is whole.

    Until then a temporary file in the same folder holds the text, so a crash never
    leaves half a file. A device or a pipe is written to as it is.

    Raises:
        UserError: the folder is missing or not writable, or the disk is full.
    """
    with _new_file(path, "w", encoding="utf-8", newline="") as file:
        yield cast(TextIO, file)


@contextmanager
def _new_file(
    path: str | os.PathLike[str], mode: str, **options: Any
) -> Iterator[IO[Any]]:
    """Opens a file as `new_text_file` does."""
    final = Path(path).resolve()  # A link stays, what it leads to is replaced.
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
