"""Collects encoded pairs into the files of a directory of shards."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from t2t_repro.data import manifest
from t2t_repro.data.manifest import DataFile, Manifest, Origin, ShardFiles, SkippedPairs
from t2t_repro.data.skipped_pairs import write_skipped_pairs
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.tokenizer import Tokenizer

_LISTED_PER_REASON = 20


class ShardWriter:
    """Collects encoded pairs and writes a shard whenever one is full.

    Attributes:
        left_out: numbers of the pairs that were not encoded, by reason.
    """

    def __init__(
        self, directory: Path, split: str, vocab_size: int, pairs_per_shard: int
    ) -> None:
        """Begins the first shard.

        Args:
            directory: where the files go.
            split: how their names begin.
            vocab_size: ids up to 65,535 are stored in two bytes, others in four.
            pairs_per_shard: of every shard but the last.
        """
        self._directory = directory
        self._split = split
        self._dtype = np.uint16 if vocab_size <= 1 << 16 else np.int32
        self._pairs_per_shard = pairs_per_shard
        self._tokens: list[npt.NDArray[np.integer]] = []
        self._lengths: list[npt.NDArray[np.int32]] = []
        self._waiting = 0
        self._written: list[int] = []  # pairs of each shard
        self._token_counts = np.zeros(2, np.int64)
        self.left_out: dict[str, list[int]] = {}

    def add(
        self, tokens: npt.NDArray[np.int32], lengths: npt.NDArray[np.int32]
    ) -> None:
        """Takes a chunk: ids int32 (tokens,), lengths int32 (pairs, 2)."""
        self._token_counts += lengths.sum(axis=0, dtype=np.int64)
        while len(lengths):
            room = self._pairs_per_shard - self._waiting
            cut = int(lengths[:room].sum())
            self._tokens.append(tokens[:cut].astype(self._dtype))
            self._lengths.append(lengths[:room])
            self._waiting += len(lengths[:room])
            tokens, lengths = tokens[cut:], lengths[room:]
            if self._waiting == self._pairs_per_shard:
                self._write_shard()

    def finish(self, origin: Origin, tokenizer: Tokenizer) -> Manifest:
        """Writes the last shard, names all of them and writes the manifest."""
        if self._waiting:
            self._write_shard()
        if not self._written:
            raise UserError(
                f"{origin.description}: no pair has text on both sides: "
                "check the problem's files"
            )
        found = Manifest(
            split=self._split,
            origin=origin,
            vocabulary_fingerprint=tokenizer.fingerprint,
            vocab_size=int(tokenizer.vocab_size),
            pairs=sum(self._written),
            source_tokens=int(self._token_counts[0]),
            target_tokens=int(self._token_counts[1]),
            left_out={
                reason: SkippedPairs(len(numbers), numbers[:_LISTED_PER_REASON])
                for reason, numbers in self.left_out.items()
            },
            shards=[self._named(shard) for shard in range(len(self._written))],
        )
        write_skipped_pairs(self._directory, self.left_out)
        path = self._directory / manifest.MANIFEST_FILE
        path.write_text(found.to_json(), encoding="utf-8")
        return found

    def _write_shard(self) -> None:
        """Writes the waiting pairs under a name that lacks the number of shards."""
        stem = self._directory / f"{len(self._written):05d}"
        for suffix, parts in (("tokens", self._tokens), ("lengths", self._lengths)):
            _save_array(stem.with_suffix(f".{suffix}.npy"), np.concatenate(parts))
        self._written.append(self._waiting)
        self._tokens, self._lengths, self._waiting = [], [], 0

    def _named(self, shard: int) -> ShardFiles:
        """Gives a shard's files their final names and measures them."""
        files = {}
        for suffix in ("tokens", "lengths"):
            name = f"{self._split}-{shard:05d}-of-{len(self._written):05d}.{suffix}.npy"
            path = self._directory / f"{shard:05d}.{suffix}.npy"
            files[suffix] = DataFile.of(path.rename(self._directory / name))
        return ShardFiles(self._written[shard], files["tokens"], files["lengths"])


def _save_array(path: Path, array: npt.NDArray[np.integer]) -> None:
    """Writes what `np.save` writes, which hides that a disk is full."""
    header = np.lib.format.header_data_from_array_1_0(array)
    try:
        with path.open("wb") as file:
            np.lib.format.write_array_header_1_0(file, header)
            file.write(array.data)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
