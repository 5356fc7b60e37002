"""Encoded sentence pairs in flat arrays, gathered into padded batches."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.integer]
Batch = dict[str, npt.NDArray[np.int32]]


class EncodedPairs:
    """Token ids of all pairs of a split: lengths in memory, ids maybe on disk.

    The ids of a pair are its source's, then its target's, each ending in EOS; pairs
    follow one another without padding.

    Attributes:
        lengths: int32 (pairs, 2), source and target tokens of each pair, EOS included.
    """

    lengths: npt.NDArray[np.int32]

    def __init__(self, tokens: Sequence[IntArray], lengths: Sequence[IntArray]) -> None:
        """Joins shards.

        Args:
            tokens: of each shard the ids, uint16 or int32 (tokens,).
            lengths: of each shard int32 (pairs, 2).

        Raises:
            ValueError: a shard's lengths do not add up to its number of ids.
        """
        for shard, (ids, sizes) in enumerate(zip(tokens, lengths, strict=True)):
            if int(sizes.sum(dtype=np.int64)) != len(ids):
                raise ValueError(f"shard {shard}: lengths do not add up to {len(ids)}")
        self.lengths = np.concatenate([np.asarray(s, np.int32) for s in lengths])
        self._tokens = list(tokens)
        # First pair of each shard, and where each pair begins within its shard.
        self._first_pairs = np.cumsum([0] + [len(s) for s in lengths[:-1]])
        self._begins = np.concatenate(
            [np.cumsum(s.sum(axis=1), dtype=np.int64) - s.sum(axis=1) for s in lengths]
        )

    @classmethod
    def from_lists(
        cls, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> "EncodedPairs":
        """Holds a few pairs in memory, given as ids that end in EOS."""
        pairs = list(zip(sources, targets, strict=True))
        flat = [token for pair in pairs for side in pair for token in side]
        sizes = [[len(source), len(target)] for source, target in pairs]
        return cls([np.array(flat, np.int32)], [np.array(sizes, np.int32)])

    def __len__(self) -> int:
        """Returns the number of pairs."""
        return len(self.lengths)

    def gather(
        self, indices: IntArray, shape: tuple[int, int, int] | None = None
    ) -> Batch:
        """Returns the pairs as a batch, padded with 0.

        Args:
            indices: int (rows,), the pairs' numbers.
            shape: rows, source width and target width; rows without a pair are zeros.
                None: a row for each pair, each side as wide as its longest.

        Returns:
            `inputs` int32 (rows, source width), `targets` int32 (rows, target width).
        """
        sizes = self.lengths[indices]
        if shape is None:
            source, target = sizes.max(axis=0, initial=0)
            shape = len(indices), int(source), int(target)
        rows, source_width, target_width = shape
        # Both sides side by side, so that a pair is one contiguous read.
        both = np.zeros((rows, source_width + target_width), np.int32)
        places = np.zeros(both.shape, bool)
        columns = np.arange(max(source_width, target_width))
        real = places[: len(indices)]
        real[:, :source_width] = columns[:source_width] < sizes[:, :1]
        real[:, source_width:] = columns[:target_width] < sizes[:, 1:]
        both[places] = self._flat(indices, sizes.sum(axis=1, dtype=np.int64))
        return {"inputs": both[:, :source_width], "targets": both[:, source_width:]}

    def _flat(self, indices: IntArray, sizes: IntArray) -> IntArray:
        """Returns the ids of the pairs one after another, (sum of sizes,)."""
        ends = np.cumsum(sizes)
        total = int(ends[-1]) if len(ends) else 0
        # Position of each id in its shard: the pair's begin plus a running number.
        positions = np.repeat(self._begins[indices] - (ends - sizes), sizes)
        positions += np.arange(total)
        if len(self._tokens) == 1:
            return self._tokens[0][positions]
        shards = np.searchsorted(self._first_pairs, indices, side="right") - 1
        shard_of = np.repeat(shards, sizes)
        flat = np.empty(total, np.int32)
        for shard in np.unique(shards):
            here = shard_of == shard
            flat[here] = self._tokens[shard][positions[here]]
        return flat
