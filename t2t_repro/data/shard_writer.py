"""Writer of the files in a directory of shards."""

import io
from pathlib import Path

import numpy as np
import numpy.typing as npt

from t2t_repro.data import manifest
from t2t_repro.data.manifest import DataFile, Manifest, Origin, ShardFiles, SkippedPairs
from t2t_repro.data.skipped_pairs import write_skipped_pairs
from t2t_repro.system.atomic_file import write_bytes_atomically
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.tokenizer import Tokenizer

_LISTED_PER_REASON = 20


class ShardWriter:
    """Collects encoded pairs and writes each shard when it is full.

    Attributes:
        left_out: Line numbers of the skipped pairs by reason.
    """

    def __init__(
        self, directory: Path, split: str, vocab_size: int, pairs_per_shard: int
    ) -> None:
        """Creates a writer without pairs.

        Args:
            directory: Existing folder for the files.
            split: Name of the split and prefix of the file names.
            vocab_size: Number of ids. Ids take two bytes if it is at most 65,536, else
                four.
            pairs_per_shard: Number of pairs in every shard except the last.
        """
        self._directory = directory
        self._split = split
        self._dtype = np.uint16 if vocab_size <= 1 << 16 else np.int32
        self._pairs_per_shard = pairs_per_shard
        self._tokens: list[npt.NDArray[np.integer]] = []
        self._lengths: list[npt.NDArray[np.int32]] = []
        self._waiting = 0
        self._written: list[int] = []  # Number of pairs in each written shard.
        self._token_counts = np.zeros(2, np.int64)
        self.left_out: dict[str, list[int]] = {}

    def add(
        self, tokens: npt.NDArray[np.int32], lengths: npt.NDArray[np.int32]
    ) -> None:
        """Adds a chunk: ids int32 (tokens,), lengths int32 (pairs, 2)."""
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
        """Writes the last shard and the manifest, and gives all shards final names.

        Raises:
            UserError: If no pair was added.
        """
        if self._waiting:
            self._write_shard()
        if not self._written:
            raise UserError(
                f"{origin.description}: no pair has text on both sides; "
                "check the problem's files"
            )
        contents = Manifest(
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
            shards=[self._rename_shard(shard) for shard in range(len(self._written))],
        )
        write_skipped_pairs(self._directory, self.left_out)
        path = self._directory / manifest.MANIFEST_FILE
        path.write_text(contents.to_json(), encoding="utf-8")
        return contents

    def _write_shard(self) -> None:
        """Writes the collected pairs under a temporary name.

        The final name includes the number of shards, which is not known yet.
        """
        stem = self._directory / f"{len(self._written):05d}"
        for suffix, parts in (("tokens", self._tokens), ("lengths", self._lengths)):
            # Writing with `np.save` would hide that the disk is full.
            contents = io.BytesIO()
            np.save(contents, np.concatenate(parts))
            path = stem.with_suffix(f".{suffix}.npy")
            write_bytes_atomically(path, contents.getvalue())
        self._written.append(self._waiting)
        self._tokens, self._lengths, self._waiting = [], [], 0

    def _rename_shard(self, shard: int) -> ShardFiles:
        """Renames the files of a shard to their final names; returns their hashes."""
        files = {}
        for suffix in ("tokens", "lengths"):
            name = f"{self._split}-{shard:05d}-of-{len(self._written):05d}.{suffix}.npy"
            path = self._directory / f"{shard:05d}.{suffix}.npy"
            files[suffix] = DataFile.from_path(path.rename(self._directory / name))
        return ShardFiles(self._written[shard], files["tokens"], files["lengths"])
