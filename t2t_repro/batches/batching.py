"""Batch plans: the pairs and the shape of every batch of an epoch.

Pairs of similar length form a micro-batch: a rectangle that one
device processes at once. Micro-batches of different shapes form a batch, which is one
step. If pairs are packed, a row holds several pairs, and all micro-batches have one
shape.

The plan of an epoch is a pure function of the pairs' lengths, the configuration, the
seed and the epoch number. Training resumes at any step by computing the plan again and
starting at the index of that step's batch.
"""

from dataclasses import dataclass

import numpy as np

from t2t_repro.batches.assembly import deal, fewest_batches
from t2t_repro.batches.buckets import choose_buckets
from t2t_repro.batches.microbatches import Groups, fill_buckets, sort_and_cut
from t2t_repro.batches.packing import pack_epoch
from t2t_repro.data.encoded_pairs import IntArray
from t2t_repro.system.errors import UserError

# More shapes would save little padding and take long to choose.
MOST_FREE_SHAPES = 512


@dataclass(frozen=True)
class BatchingConfig:
    """Batching settings. `HParams` validates those that users can set.

    Attributes:
        tokens_per_batch: Upper bound on the padded positions of each side of a global
            batch: rows (filler rows included) x width, summed over its micro-batches.
            (Paper section 5.1: about 25,000 source and 25,000 target tokens. T2T:
            `batch_size` bounds the shard of one GPU instead.)
        kind: `sorted`, `buckets` or `packed`. `sorted` cuts batches of one micro-batch
            from pairs sorted by their longer side and pads each to its own longest
            source and target; batches of several micro-batches use one static shape
            per full micro-batch. `buckets` uses at most `max_shapes` static shapes,
            chosen for the corpus. `packed` puts several pairs into each row and uses
            one shape.
        max_length: Maximum number of tokens of each side of a pair, EOS included;
            longer pairs are skipped.
        tokens_per_microbatch: Upper bound on the padded positions of each side of a
            micro-batch. If it is 0 or at least `tokens_per_batch`, every batch is one
            micro-batch.
        max_shapes: Maximum number of shapes of kind `buckets`.
        microbatches_per_shape: Minimum mean number of full micro-batches per shape of
            kind `buckets`; 0 disables it. It reduces the number of shapes for a small
            corpus, because the last micro-batch of every shape is only partly full.
        rows_multiple: The number of rows of each micro-batch is a multiple of this if
            the bound allows that many rows. Values above 1 are for several devices:
            shapes are then chosen to be full at such multiples, and a batch has at
            most `tokens_per_batch // tokens_per_microbatch` micro-batches. Kind
            `packed` obeys only the last of these rules.
        packed_length: Width of both sides of a row of kind `packed`, at most
            `microbatch_bound`; longer pairs are skipped.
    """

    tokens_per_batch: int
    kind: str = "sorted"
    max_length: int = 256
    tokens_per_microbatch: int = 0
    max_shapes: int = 48
    microbatches_per_shape: int = 2
    rows_multiple: int = 1
    packed_length: int = 256

    @property
    def microbatch_bound(self) -> int:
        """Upper bound on the padded positions of each side of a micro-batch."""
        whole = self.tokens_per_batch
        return min(self.tokens_per_microbatch or whole, whole)

    @property
    def is_one_microbatch(self) -> bool:
        """Whether every batch is a single micro-batch."""
        return self.microbatch_bound == self.tokens_per_batch

    @property
    def whole_microbatches(self) -> int:
        """Number of micro-batches of the largest size in a batch."""
        return self.tokens_per_batch // self.microbatch_bound

    @property
    def longest_usable(self) -> int:
        """Maximum number of tokens per side of a pair that fits into a row."""
        row = self.packed_width if self.kind == "packed" else self.microbatch_bound
        return min(self.max_length, row)

    @property
    def packed_width(self) -> int:
        """Positions per side of a packed row."""
        return min(self.packed_length, self.microbatch_bound)

    @property
    def packed_rows(self) -> int:
        """Maximum rows of a packed micro-batch; 1 or even, so that halves are equal."""
        rows = self.microbatch_bound // self.packed_width
        return rows - rows % 2 if rows > 1 else rows

    @property
    def packed_microbatches(self) -> int:
        """Number of micro-batches of every packed batch."""
        most = self.tokens_per_batch // self.packed_width // self.packed_rows
        return min(most, self.whole_microbatches) if self.rows_multiple > 1 else most


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
        return np.add.reduceat(_wider(self.shapes), self.firsts)

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


def plan_epoch(
    lengths: IntArray, config: BatchingConfig, seed: int, epoch: int
) -> EpochPlan:
    """Plans an epoch: every pair that is short enough is in exactly one batch.

    The number of batches and the shapes of kinds `buckets` and `packed` depend only on
    `lengths` and `config`. The composition and the order of batches also depend on
    `seed` and `epoch`. Nothing depends on the devices.

    Args:
        lengths: int (pairs, 2), source and target tokens of each pair, EOS included.
        config: Batching settings.
        seed: Random seed.
        epoch: Number of the epoch, from 0.

    Raises:
        UserError: If no pair is short enough.
    """
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, epoch])))
    usable = np.flatnonzero(lengths.max(axis=1, initial=0) <= config.longest_usable)
    if not len(usable):
        bound = "packed_length" if config.kind == "packed" else "tokens_per_batch"
        raise UserError(
            f"each of {len(lengths)} pairs has a side of more than "
            f"{config.longest_usable} tokens: increase max_length or {bound}, or check "
            "the data"
        )
    shuffled = rng.permutation(usable)
    if config.kind == "packed":
        each = config.packed_microbatches
        groups = pack_epoch(
            shuffled, lengths, config.packed_width, config.packed_rows, each, rng
        )
        microbatches: IntArray = np.arange(len(groups.starts))
        firsts: IntArray = microbatches[::each]
    else:
        groups = _group(shuffled, lengths, config)
        microbatches, firsts = _deal(groups, config, rng)
    return _plan(groups, microbatches, firsts, lengths)


def plan_evaluation(
    lengths: IntArray, config: BatchingConfig, longest: float = np.inf
) -> EpochPlan:
    """Plans one pass over all pairs, in batches of one micro-batch, shortest first.

    Args:
        lengths: int (pairs, 2), source and target tokens of each pair, EOS included.
        config: Batching settings. A pair longer than `microbatch_bound` becomes a batch
            of one.
        longest: Maximum length of a side; longer pairs are skipped. Default: no limit.
    """
    used = np.flatnonzero(lengths.max(axis=1, initial=0) <= longest)
    groups = sort_and_cut(used, lengths, config.microbatch_bound)
    microbatches = np.arange(len(groups.starts))
    return _plan(groups, microbatches, microbatches, lengths)


def _plan(
    groups: Groups, order: IntArray, firsts: IntArray, lengths: IntArray
) -> EpochPlan:
    """Returns the plan with the micro-batches in the given order."""
    return EpochPlan(
        order=groups.order,
        starts=groups.starts[order],
        counts=groups.counts[order],
        shapes=groups.shapes[order],
        firsts=firsts,
        dropped=len(lengths) - len(groups.order),
        tokens=int(lengths[groups.order].sum(dtype=np.int64)),
        rows=groups.rows,
    )


def _group(shuffled: IntArray, lengths: IntArray, config: BatchingConfig) -> Groups:
    """Cuts shuffled pairs, int64 (used pairs,), into micro-batches by `config.kind`."""
    if config.kind == "sorted" and config.is_one_microbatch:
        return sort_and_cut(
            shuffled, lengths, config.microbatch_bound, config.rows_multiple
        )
    used = lengths[shuffled]
    bucket, widths = choose_buckets(
        used,
        config.longest_usable,
        _count_shapes(used, config),
        config.microbatch_bound
        if config.rows_multiple > 1 or not config.is_one_microbatch
        else 0,
        config.rows_multiple,
    )
    return fill_buckets(
        shuffled, bucket, widths, config.microbatch_bound, config.rows_multiple
    )


def _deal(
    groups: Groups, config: BatchingConfig, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Returns the micro-batches in the order of the batches, and the first of each."""
    if config.is_one_microbatch:
        return rng.permutation(len(groups.starts)), np.arange(len(groups.starts))
    sizes = _wider(groups.shapes)
    batches = fewest_batches(sizes, config.tokens_per_batch)
    if config.rows_multiple > 1:
        batches = max(batches, -(-len(sizes) // config.whole_microbatches))
    return deal(sizes, batches, rng)


def _count_shapes(lengths: IntArray, config: BatchingConfig) -> int:
    """Returns the number of shapes for a corpus of lengths int (pairs, 2)."""
    positions = int(lengths.max(axis=1).sum(dtype=np.int64))
    full_microbatches = positions // config.microbatch_bound
    if config.kind == "sorted":
        return max(1, min(MOST_FREE_SHAPES, full_microbatches))
    if not config.microbatches_per_shape:
        return config.max_shapes
    return max(
        1, min(config.max_shapes, full_microbatches // config.microbatches_per_shape)
    )


def _wider(shapes: IntArray) -> IntArray:
    """Returns the padded positions of the wider side: int (n, 3) to (n,)."""
    return shapes[:, 0] * shapes[:, 1:].max(axis=1)
