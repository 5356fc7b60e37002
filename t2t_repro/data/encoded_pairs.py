"""Encoded sentence pairs in flat arrays, gathered into padded batches."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.integer]
Ids = npt.NDArray[np.int32]
Batch = dict[str, Ids]


class EncodedPairs:
    """Token ids of all pairs of a split.

    Lengths are in memory; ids may be memory-mapped. Pairs are stored without padding,
    each as its source ids and its target ids, both ending in EOS.

    Attributes:
        lengths: int32 (pairs, 2), source and target tokens of each pair, EOS included.
    """

    lengths: npt.NDArray[np.int32]

    def __init__(self, tokens: Sequence[IntArray], lengths: Sequence[IntArray]) -> None:
        """Concatenates shards.

        Args:
            tokens: Ids of each shard, uint16 or int32 (tokens,).
            lengths: Lengths of each shard, int32 (pairs, 2).

        Raises:
            ValueError: If the lengths of a shard do not add up to its number of ids.
        """
        for shard, (ids, sizes) in enumerate(zip(tokens, lengths, strict=True)):
            if int(sizes.sum(dtype=np.int64)) != len(ids):
                raise ValueError(f"shard {shard}: lengths do not add up to {len(ids)}")
        self.lengths = np.concatenate([np.asarray(s, np.int32) for s in lengths])
        self._tokens = list(tokens)
        # First pair of each shard, and offset of each pair within its shard.
        self._first_pairs = np.cumsum([0] + [len(s) for s in lengths[:-1]])
        self._begins = np.concatenate(
            [np.cumsum(s.sum(axis=1), dtype=np.int64) - s.sum(axis=1) for s in lengths]
        )

    @classmethod
    def from_lists(
        cls, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> "EncodedPairs":
        """Creates pairs from lists of ids, each ending in EOS."""
        pairs = list(zip(sources, targets, strict=True))
        flat = [token for pair in pairs for side in pair for token in side]
        sizes = [[len(source), len(target)] for source, target in pairs]
        return cls([np.array(flat, np.int32)], [np.array(sizes, np.int32)])

    @classmethod
    def join(cls, corpora: Sequence["EncodedPairs"]) -> "EncodedPairs":
        """Creates the pairs of several corpora, one after the other."""
        tokens = [shard for corpus in corpora for shard in corpus._tokens]
        lengths = [
            shard
            for corpus in corpora
            for shard in np.split(corpus.lengths, corpus._first_pairs[1:])
        ]
        return cls(tokens, lengths)

    def __len__(self) -> int:
        """Returns the number of pairs."""
        return len(self.lengths)

    def gather(
        self,
        indices: IntArray,
        shape: Sequence[int] | None = None,
        rows_of: IntArray | None = None,
    ) -> Batch:
        """Returns pairs as a batch, padded with 0.

        Args:
            indices: Pair numbers, int (pairs,).
            shape: Rows, source width and target width; excess rows are zeros. Default:
                one row per pair, and each side as wide as its longest sequence.
            rows_of: int (pairs,), row of each pair, ascending. Pairs of the same row
                are placed one after the other on both sides. Default: each pair has
                its own row.

        Returns:
            `inputs` int32 (rows, source width), `targets` int32 (rows, target width).
        """
        sizes = self.lengths[indices]
        rows, source, target = shape or (len(indices), *sizes.max(axis=0, initial=0))
        if rows_of is None:
            rows_of = np.arange(len(indices))
        # Source and target are adjacent, so that each pair is one contiguous read.
        both = np.zeros((rows, source + target), np.int32)
        # A side begins after the tokens of earlier pairs in the same row.
        earlier = np.cumsum(sizes, axis=0) - sizes
        begins = earlier - earlier[np.searchsorted(rows_of, rows_of)]
        begins += rows_of[:, None] * both.shape[1] + [0, source]
        ids = self._flat(indices, sizes.sum(axis=1, dtype=np.int64))
        both.ravel()[_runs(begins.ravel(), sizes.ravel())] = ids
        return {"inputs": both[:, :source], "targets": both[:, source:]}

    def _flat(self, indices: IntArray, sizes: IntArray) -> IntArray:
        """Returns the concatenated ids of the pairs, int (sum of sizes,)."""
        positions = _runs(self._begins[indices], sizes)
        if len(self._tokens) == 1:
            return self._tokens[0][positions]
        shards = np.searchsorted(self._first_pairs, indices, side="right") - 1
        shard_of = np.repeat(shards, sizes)
        flat = np.empty(len(positions), np.int32)
        for shard in np.unique(shards):
            mask = shard_of == shard
            flat[mask] = self._tokens[shard][positions[mask]]
        return flat


def _runs(begins: IntArray, sizes: IntArray) -> IntArray:
    """Returns the concatenated ranges that begin at `begins`, int64 (sum of sizes,)."""
    earlier = np.cumsum(sizes) - sizes
    runs: IntArray = np.repeat(begins - earlier, sizes)
    return runs + np.arange(len(runs))
