"""The plan of an epoch: its batches, their micro-batches and the pairs in these."""

from dataclasses import dataclass

import numpy as np

from t2t_repro.data.encoded_pairs import IntArray


@dataclass(frozen=True)
class EpochPlan:
    """Batches of one epoch in training order.

    Attributes:
        order: int64 (used pairs,), pair numbers grouped by micro-batch; each once.
        starts: int64 (micro-batches,), index in `order` of the first pair of each.
        counts: int64 (micro-batches,), number of pairs in each.
        shapes: int64 (micro-batches, 3), rows (filler rows included), source width and
            target width.
        firsts: int64 (batches,), first micro-batch of each batch; the micro-batches of
            a batch are consecutive.
        dropped: Number of pairs skipped because a side is too long.
        tokens: Number of tokens in all batches, both sides, EOS included.
        rows: int (used pairs,), row of each entry of `order` in its micro-batch,
            ascending; None if each pair has its own row.
    """

    order: IntArray
    starts: IntArray
    counts: IntArray
    shapes: IntArray
    firsts: IntArray
    dropped: int
    tokens: int
    rows: IntArray | None = None

    @property
    def batches(self) -> int:
        """Number of batches; the same in every epoch."""
        return len(self.firsts)

    @property
    def microbatches(self) -> int:
        """Number of micro-batches in the epoch."""
        return len(self.starts)

    @property
    def distinct_shapes(self) -> int:
        """Number of distinct shapes (rows, source width, target width)."""
        return len(np.unique(self.shapes, axis=0))

    @property
    def positions(self) -> int:
        """Number of padded positions: sum of rows x (source width + target width)."""
        return int((self.shapes[:, 0] * self.shapes[:, 1:].sum(axis=1)).sum())

    @property
    def sizes(self) -> IntArray:
        """Batch sizes: sum of the micro-batches' wider sides, int64 (batches,)."""
        return np.add.reduceat(wider_sides(self.shapes), self.firsts)

    @property
    def fill_ratio(self) -> float:
        """Mean batch size divided by the largest; 1.0 if all sizes are equal."""
        return float(self.sizes.mean() / self.sizes.max())

    @property
    def token_ratio(self) -> float:
        """Non-padding tokens over padded positions, filler rows included."""
        return self.tokens / self.positions

    def microbatch_range(self, batch: int) -> slice:
        """Returns the range of a batch's micro-batches."""
        last = batch + 1 == self.batches
        return slice(self.firsts[batch], None if last else self.firsts[batch + 1])

    def indices(self, batch: int) -> IntArray:
        """Returns a batch's pair numbers, int64 (pairs,), grouped by micro-batch."""
        return np.concatenate([self.order[run] for run in self._runs(batch)])

    def pair_rows(self, batch: int) -> IntArray:
        """Returns the row of each pair in its micro-batch, int64 (pairs,)."""
        runs = self._runs(batch)
        if self.rows is None:
            return np.concatenate([np.arange(run.stop - run.start) for run in runs])
        return np.concatenate([self.rows[run] for run in runs], dtype=np.int64)

    def _runs(self, batch: int) -> list[slice]:
        """Returns the range in `order` of each micro-batch of a batch."""
        own = self.microbatch_range(batch)
        runs = zip(self.starts[own], self.counts[own], strict=True)
        return [slice(start, start + count) for start, count in runs]

    def summary(self) -> str:
        """Describes the plan in one log line."""
        microbatches, shapes = "", "1 shape"
        if self.distinct_shapes > 1:
            shapes = f"{self.distinct_shapes:,} shapes"
        if self.microbatches > self.batches:
            microbatches = f" ({self.microbatches:,} micro-batches)"
        return (
            f"{len(self.order):,} pairs (skipped {self.dropped:,} that are too long) "
            f"in {self.batches:,} batches{microbatches} of {shapes}; "
            f"{self.token_ratio:.1%} of the positions are tokens; mean batch size is "
            f"{self.fill_ratio:.0%} of the largest"
        )


def wider_sides(shapes: IntArray) -> IntArray:
    """Returns the padded positions of the wider side: int (n, 3) to (n,)."""
    return shapes[:, 0] * shapes[:, 1:].max(axis=1)
