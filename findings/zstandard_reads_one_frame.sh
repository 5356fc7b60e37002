#!/usr/bin/env bash
# Three of six ways to decompress with zstandard 0.25.0 end after the first frame.
#
# A .zst file may have several frames: "cat a.zst b.zst", pzstd and zstd --adapt
# write such files, and RFC 8878 defines their content as the concatenation of
# all frames. A good engineer would guess that a library reads the whole file or
# raises an error. In zstandard 0.25.0
#
#   open, stream_reader, copy_stream          return 6 of 6 lines;
#   decompress, decompressobj, read_to_iter   return 3 of 6 lines, without an error;
#   stream_reader(read_across_frames=False)   returns 6, although the default of
#                                             this argument is documented as the
#                                             reason to stop at the first frame;
#   decompress(read_across_frames=True)       raises "not yet implemented".
#
# Source: the docstring of ZstdDecompressor.decompress in zstandard/
# backend_cffi.py states that extra data is silently ignored.
#
# Meaning for translation models: large parallel corpora come as .zst, often
# compressed in parallel or joined from parts. Read in one of the latter ways,
# a side of a corpus ends early, on a line boundary, and nothing reports it.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --no-compile 'zstandard==0.25.0'
cd "$folder"

venv/bin/python - <<'PYTHON'
import io
import sys

import zstandard

compressor = zstandard.ZstdCompressor()
data = compressor.compress(b"one\ntwo\nthree\n") + compressor.compress(b"4\n5\n6\n")
with open("train.en.zst", "wb") as file:
    file.write(data)


def copy_stream() -> bytes:
    result = io.BytesIO()
    zstandard.ZstdDecompressor().copy_stream(io.BytesIO(data), result)
    return result.getvalue()


def open_file() -> bytes:
    with zstandard.open("train.en.zst") as file:
        return file.read()


new = zstandard.ZstdDecompressor
lines = {
    "open": open_file(),
    "stream_reader": new().stream_reader(io.BytesIO(data)).read(),
    "stream_reader, read_across_frames=False": new()
    .stream_reader(io.BytesIO(data), read_across_frames=False)
    .read(),
    "copy_stream": copy_stream(),
    "decompress": new().decompress(data),
    "decompressobj": new().decompressobj().decompress(data),
    "read_to_iter": b"".join(new().read_to_iter(io.BytesIO(data))),
}
counts = [len(text.splitlines()) for text in lines.values()]
for name, count in zip(lines, counts, strict=True):
    print(f"{name:40} {count} of 6 lines")
if counts != [6, 6, 6, 6, 3, 3, 3]:
    sys.exit("changed: the number of lines that a function returns")
PYTHON
