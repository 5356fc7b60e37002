"""Files of a split that is being encoded: shards, and at the end their manifest.

Shards that an interrupted run, or another machine, has finished are kept.
"""

import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from t2t_repro.data import manifest
from t2t_repro.data.manifest import DataFile, Manifest, Origin, ShardFiles, SkippedPairs
from t2t_repro.data.shard_encoding import PAIRS_PER_CALL, Chunk, EncodedChunk
from t2t_repro.data.skipped_pairs import write_skipped_pairs
from t2t_repro.system.atomic_file import write_bytes_atomically, write_text_atomically
from t2t_repro.system.errors import UserError

EMPTY_SOURCE, EMPTY_TARGET = "empty source", "empty target"
_LISTED_PER_REASON = 20


class ShardWriter:
    """Divides the pairs of a split into shards and writes each shard when it is full.

    Args:
        directory: Existing folder for the files.
        pairs_per_shard: Number of pairs in every shard except the last.
    """

    def __init__(self, directory: Path, pairs_per_shard: int) -> None:
        self._directory = directory
        self._pairs_per_shard = pairs_per_shard
        self._pairs = 0  # Number of pairs with text on both sides.
        self._left_out: dict[str, list[int]] = {}
        self._waiting: list[EncodedChunk] = []

    def missing_chunks(
        self, pairs: Iterable[tuple[str, str]], part: tuple[int, int] = (0, 1)
    ) -> Iterator[Chunk]:
        """Yields the pairs of the shards that must be encoded.

        Args:
            pairs: All pairs of the split. Those with an empty side are skipped.
            part: Index and number of the parts of a corpus; every n-th shard belongs
                to the same part.
        """
        chunk = Chunk(0, [])
        wanted = False
        for number, pair in enumerate(pairs, start=1):
            if not pair[0].strip():
                self._left_out.setdefault(EMPTY_SOURCE, []).append(number)
                continue
            if not pair[1].strip():
                self._left_out.setdefault(EMPTY_TARGET, []).append(number)
                continue
            shard, place = divmod(self._pairs, self._pairs_per_shard)
            self._pairs += 1
            if place == 0:
                chunk = Chunk(shard, [])
                is_own = shard % part[1] == part[0]
                wanted = is_own and not _is_whole(self._path(shard, "lengths"))
            if wanted:
                chunk.pairs.append(pair)
                is_last = place == self._pairs_per_shard - 1
                if is_last or len(chunk.pairs) == PAIRS_PER_CALL:
                    yield chunk
                    chunk = Chunk(shard, [])
        if chunk.pairs:
            yield chunk

    def add(self, chunks: Iterable[EncodedChunk]) -> None:
        """Writes the shards of encoded chunks, which are in order."""
        for chunk in chunks:
            self._waiting.append(chunk)
            pairs = sum(len(each.lengths) for each in self._waiting)
            if pairs == self._pairs_per_shard:
                self._write_shard()
        if self._waiting:
            self._write_shard()

    def finish(
        self, split: str, origin: Origin, vocabulary_fingerprint: str, vocab_size: int
    ) -> Manifest:
        """Writes the manifest and gives all shards final names.

        Args:
            split: Name of the split and prefix of the file names.
            origin: Origin of the pairs.
            vocabulary_fingerprint: SHA-256 of the vocabulary file.
            vocab_size: Number of ids of the source.

        Raises:
            UserError: If no pair has text on both sides.
        """
        if not self._pairs:
            raise UserError(
                f"{origin.description}: no pair has text on both sides; "
                "check the problem's files"
            )
        count = -(-self._pairs // self._pairs_per_shard)
        tokens = np.zeros(2, np.int64)
        shards = []
        for shard in range(count):
            lengths = np.load(self._path(shard, "lengths"))
            tokens += lengths.sum(axis=0, dtype=np.int64)
            files = [
                DataFile.from_path(
                    self._path(shard, kind).rename(
                        self._directory
                        / f"{split}-{shard:05d}-of-{count:05d}.{kind}.npy"
                    )
                )
                for kind in ("tokens", "lengths")
            ]
            shards.append(ShardFiles(len(lengths), *files))
        contents = Manifest(
            split=split,
            origin=origin,
            vocabulary_fingerprint=vocabulary_fingerprint,
            vocab_size=vocab_size,
            pairs=self._pairs,
            source_tokens=int(tokens[0]),
            target_tokens=int(tokens[1]),
            left_out={
                reason: SkippedPairs(len(numbers), numbers[:_LISTED_PER_REASON])
                for reason, numbers in self._left_out.items()
            },
            shards=shards,
        )
        for path in self._directory.glob(".*.tmp"):
            path.unlink()  # A run that was killed has left it.
        write_skipped_pairs(self._directory, self._left_out)
        path = self._directory / manifest.MANIFEST_FILE
        write_text_atomically(path, contents.to_json())
        return contents

    def _path(self, shard: int, kind: str) -> Path:
        """Returns the temporary path of a file of a shard.

        The final name includes the number of shards, which is not known yet.
        """
        return self._directory / f"{shard:05d}.{kind}.npy"

    def _write_shard(self) -> None:
        """Writes the waiting chunks."""
        shard = self._waiting[0].shard
        arrays: dict[str, list[npt.NDArray[Any]]] = {
            "tokens": [chunk.tokens for chunk in self._waiting],
            "lengths": [chunk.lengths for chunk in self._waiting],
        }
        self._waiting = []
        for kind, parts in arrays.items():
            # Writing with `np.save` would hide that the disk is full.
            contents = io.BytesIO()
            np.save(contents, np.concatenate(parts))
            write_bytes_atomically(self._path(shard, kind), contents.getvalue())


def whole_shards(directory: Path) -> list[Path]:
    """Returns a file of each shard in the folder of an unfinished split."""
    return sorted(filter(_is_whole, directory.glob("[0-9]*.lengths.npy")))


def _is_whole(lengths: Path) -> bool:
    """Returns whether both files of a shard exist.

    An interrupted `finish` may have renamed the tokens only.
    """
    tokens = lengths.with_name(lengths.name.replace(".lengths.", ".tokens."))
    return lengths.exists() and tokens.exists()
