"""Tests of reading compressed files."""

import bz2
import gzip
import lzma

import pytest
import zstandard

from t2t_repro.system.compression import open_bytes
from t2t_repro.system.errors import UserError

COMPRESS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor().compress,
}
NAMES = {"gz": "gzip", "bz2": "bzip2", "xz": "xz", "zst": "Zstandard"}
# Larger than the blocks of the decompressors.
CONTENTS = [bytes(range(256)) * 2000, b"", b"second member\n", b"x" * 300_000]


def write(path, suffix):
    """Writes a file with several members and returns its path."""
    path = path / f"text.{suffix}"
    path.write_bytes(b"".join(map(COMPRESS[suffix], CONTENTS)))
    return path


@pytest.mark.parametrize("suffix", COMPRESS)
def test_reads_all_members(tmp_path, suffix):
    with open_bytes(write(tmp_path, suffix)) as file:
        assert file.read() == b"".join(CONTENTS)


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("cut", [3, 40, -40, -1])
def test_rejects_an_incomplete_file(tmp_path, suffix, cut):
    path = write(tmp_path, suffix)
    path.write_bytes(path.read_bytes()[:cut])
    with (
        pytest.raises(
            UserError, match=rf"text\.{suffix} is not a complete {NAMES[suffix]}"
        ),
        open_bytes(path) as file,
    ):
        file.read()


@pytest.mark.parametrize("suffix", COMPRESS)
def test_rejects_other_bytes(tmp_path, suffix):
    path = tmp_path / f"text.{suffix}"
    path.write_bytes(b"plain text\n" * 10)
    with pytest.raises(UserError, match="copy or download"), open_bytes(path) as file:
        file.read()


def test_rejects_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(UserError, match="does not exist"):
        open_bytes(tmp_path / "absent.zst")
    with pytest.raises(UserError, match="is a directory"):
        open_bytes(tmp_path)
