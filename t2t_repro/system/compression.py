"""Decompression of .gz, .bz2, .xz and .zst files, chosen by the ending of the name."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from t2t_repro.system.errors import UserError

_NAMES = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "Zstandard"}
SUFFIXES = tuple(_NAMES)
"""Endings of the names of compressed files."""

# A block of 128 KiB takes at least 4 bytes in Zstandard, so one read of this number of
# bytes decompresses to at most 128 MiB.
_ZSTD_READ = 4096
_LARGEST_ZSTD_WINDOW = 1 << 31  # The limit of `zstd --long=31`.


def strip_suffix(name: str) -> str:
    """Returns a file name without the ending of a compressed file."""
    for suffix in SUFFIXES:
        if name.endswith(suffix):
            return name.removesuffix(suffix)
    return name


def open_bytes(path: str | os.PathLike[str]) -> BinaryIO:
    """Opens a file to read its bytes, decompressed according to its name.

    All members of a gzip file, all streams of a bzip2 or xz file and all frames of a
    Zstandard file are read.

    Raises:
        UserError: The file is missing, a directory or unreadable, or zstandard is not
            installed. `read` raises it if the compressed data are damaged or
            incomplete.
    """
    path = Path(path)
    if path.is_dir():
        raise UserError(f"{path} is a directory; a file is needed here")
    try:
        file = cast(BinaryIO, io.BufferedReader(io.FileIO(path)))
    except FileNotFoundError:
        raise UserError(f"{path} does not exist") from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    if not path.name.endswith(SUFFIXES):
        return file
    raw = _Decompressed(path, file)
    return cast(BinaryIO, io.BufferedReader(raw))


class _Decompressed(io.RawIOBase):
    """Stream of decompressed blocks, which converts errors of the decompressor."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        self._file = file
        self._blocks = _iterate_blocks(path, file)
        self._block = memoryview(b"")

    def readable(self) -> bool:
        """Returns True."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Reads at most `len(buffer)` bytes; 0 at the end of the file."""
        if not self._block:
            try:
                self._block = memoryview(next(self._blocks, b""))
            except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
                if isinstance(error, OSError) and error.errno is not None:
                    raise
                raise UserError(
                    f"{self._path} is not a complete {_NAMES[self._path.suffix]} file "
                    f"({error}); copy or download it again"
                ) from None
        size = min(len(buffer), len(self._block))
        buffer[:size], self._block = self._block[:size], self._block[size:]
        return size

    def close(self) -> None:
        """Closes the compressed file."""
        self._file.close()
        super().close()


def _iterate_blocks(path: Path, file: BinaryIO) -> Iterator[bytes]:
    """Yields decompressed blocks, none of which is empty."""
    if path.suffix == ".zst":
        yield from filter(None, _iterate_frames(path, file))
        return
    openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    with openers[path.suffix](file) as stream:
        while block := stream.read(io.DEFAULT_BUFFER_SIZE):
            yield block


def _iterate_frames(path: Path, file: BinaryIO) -> Iterator[bytes]:
    """Yields the decompressed blocks of all frames of a Zstandard file.

    The library's own `stream_reader` does not report a frame that is incomplete.
    """
    try:
        import zstandard
    except ImportError:
        raise UserError(
            f"{path}: reading .zst files needs zstandard; run pip install zstandard, "
            "or decompress the file with unzstd"
        ) from None
    decompressor = zstandard.ZstdDecompressor(max_window_size=_LARGEST_ZSTD_WINDOW)
    frame = None
    try:
        while data := file.read(_ZSTD_READ):
            while data:
                frame = frame or decompressor.decompressobj()
                yield frame.decompress(data)
                data = frame.unused_data if frame.eof else b""
                frame = None if frame.eof else frame
    except zstandard.ZstdError as error:
        raise EOFError(str(error)) from None
    if frame is not None:
        raise EOFError("the last frame is incomplete")
