"""The arithmetic of batches: which pairs share a batch, and in what shapes.

Pairs of like lengths make a part, a rectangle of one shape that one device holds;
parts of different shapes make a batch, which is one update.

The plan of an epoch is a pure function of the pairs' lengths, the configuration, the
seed and the epoch's number. Nothing else remembers a place in the data, so a training
resumes at any step by computing the plan again and starting at a batch's index.
"""

from dataclasses import dataclass

import numpy as np

from t2t_repro.batches.assembly import deal, fewest_batches
from t2t_repro.batches.buckets import chosen_buckets
from t2t_repro.batches.microbatches import Groups, fill_buckets, sort_and_cut
from t2t_repro.data.encoded_pairs import IntArray
from t2t_repro.system.errors import UserError

# More shapes hardly save padding, and take long to choose.
MOST_FREE_SHAPES = 512


@dataclass(frozen=True)
class BatchingConfig:
    """How pairs are made into batches; `HParams` checks what a user sets of it.

    Attributes:
        tokens_per_batch: upper bound of the padded positions of each side of a global
            batch, filler rows included: of rows x width, summed over its parts.
            (Paper section 5.1: about 25,000 source and 25,000 target tokens. T2T:
            `batch_size` bounds one GPU's share instead.)
        kind: `sorted`: a batch of one part is cut from pairs sorted by their longer
            side and padded to its own longest source and target; where there are
            several parts, as many shapes are chosen as there are full parts.
            `buckets`: at most `max_shapes` static shapes, chosen for the corpus.
        max_length: longest side in tokens, EOS included, of a pair that is used.
        tokens_per_part: the same bound for each part; 0, or no less than
            `tokens_per_batch`: a batch is one part.
        max_shapes: upper bound of the shapes of kind `buckets`.
        parts_per_shape: with kind `buckets`, at least so many full parts for every
            shape, whose last part is not full: else a small corpus in many shapes
            would be trained on in parts much smaller than the bound. 0: no bound.
        rows_multiple: above 1, for devices that work side by side: a part has a
            multiple of so many rows if as many fit, shapes are chosen that are full at
            it, and a batch has no more parts than its bound is divided into.
    """

    tokens_per_batch: int
    kind: str = "sorted"
    max_length: int = 256
    tokens_per_part: int = 0
    max_shapes: int = 48
    parts_per_shape: int = 2
    rows_multiple: int = 1

    @property
    def part_bound(self) -> int:
        """Upper bound of the padded positions of each side of a part."""
        return min(self.tokens_per_part or self.tokens_per_batch, self.tokens_per_batch)

    @property
    def is_one_part(self) -> bool:
        """Whether every batch is a single part."""
        return self.part_bound == self.tokens_per_batch

    @property
    def longest_usable(self) -> int:
        """Longest side in tokens that `max_length` and one part can hold."""
        return min(self.max_length, self.part_bound)


@dataclass(frozen=True)
class EpochPlan:
    """One epoch's batches, in the order in which they are trained on."""

    order: IntArray  # int64 (pairs used,), pair numbers; a part is a run of it.
    starts: IntArray  # int64 (parts,), first position of each part in `order`.
    counts: IntArray  # int64 (parts,), pairs in each part.
    # int64 (parts, 3): rows with filler rows, source and target width.
    shapes: IntArray
    # int64 (batches,), first part of each batch; a batch is a run of parts.
    firsts: IntArray
    dropped: int  # Pairs left out because a side is too long.
    tokens: int  # Tokens in all batches, both sides, EOS included.

    @property
    def batches(self) -> int:
        """Number of batches, which is the same in every epoch."""
        return len(self.firsts)

    @property
    def parts(self) -> int:
        """Number of parts of all batches."""
        return len(self.starts)

    @property
    def pairs(self) -> int:
        """Number of pairs used, each once."""
        return len(self.order)

    @property
    def distinct_shapes(self) -> int:
        """Number of different (rows, source width, target width)."""
        return len(np.unique(self.shapes, axis=0))

    @property
    def positions(self) -> int:
        """Padded positions: the sum of rows x (source width + target width)."""
        return int((self.shapes[:, 0] * self.shapes[:, 1:].sum(axis=1)).sum())

    @property
    def sizes(self) -> IntArray:
        """Padded positions of each batch: the sum over its parts' wider sides."""
        return np.add.reduceat(_wider(self.shapes), self.firsts)

    @property
    def fill_ratio(self) -> float:
        """Mean size over that of the largest batch: 1.0 if all are equal."""
        return float(self.sizes.mean() / self.sizes.max())

    @property
    def token_ratio(self) -> float:
        """Non-padding tokens over padded positions, filler rows counted."""
        return self.tokens / self.positions

    def parts_of(self, batch: int) -> slice:
        """Returns which parts a batch is made of."""
        last = batch + 1 == self.batches
        return slice(self.firsts[batch], None if last else self.firsts[batch + 1])

    def indices(self, batch: int) -> IntArray:
        """Returns the pair numbers of a batch, int64 (pairs,), part after part."""
        parts = self.parts_of(batch)
        runs = zip(self.starts[parts], self.counts[parts], strict=True)
        return np.concatenate([self.order[start : start + n] for start, n in runs])

    def summary(self) -> str:
        """Describes the plan in one line for a log."""
        parts = f"{self.parts:,} parts and " if self.parts > self.batches else ""
        return (
            f"{self.pairs:,} pairs ({self.dropped:,} too long left out) in "
            f"{self.batches:,} batches of {parts}{self.distinct_shapes:,} shapes, "
            f"{self.token_ratio:.1%} of the positions are tokens, batches are "
            f"{self.fill_ratio:.0%} as large as the largest"
        )


def plan_epoch(
    lengths: IntArray, config: BatchingConfig, seed: int, epoch: int
) -> EpochPlan:
    """Plans an epoch: every usable pair in exactly one batch.

    The number of batches, and with buckets the shapes of parts, depend on `config` and
    `lengths` (int (pairs, 2), source and target tokens, EOS included) alone; which
    pairs share a batch, and the batches' order, are new in every epoch. Nothing depends
    on where the training runs. If no pair is short enough, that is a UserError.
    """
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, epoch])))
    usable = _usable(lengths, config)
    shuffled = rng.permutation(usable)
    groups = _group(shuffled, lengths, config)
    if config.is_one_part:
        parts: IntArray = rng.permutation(len(groups.starts))
        firsts: IntArray = np.arange(len(parts))
    else:
        sizes = _wider(groups.shapes)
        batches = fewest_batches(sizes, config.tokens_per_batch)
        if config.rows_multiple > 1:
            whole = config.tokens_per_batch // config.part_bound
            batches = max(batches, -(-len(sizes) // whole))
        parts, firsts = deal(sizes, batches, rng)
    return EpochPlan(
        order=groups.order,
        starts=groups.starts[parts],
        counts=groups.counts[parts],
        shapes=groups.shapes[parts],
        firsts=firsts,
        dropped=len(lengths) - len(usable),
        tokens=int(lengths[usable].sum(dtype=np.int64)),
    )


def plan_evaluation(
    lengths: IntArray, config: BatchingConfig, longest: int | None = None
) -> EpochPlan:
    """Plans one pass over all pairs in batches of one part, shortest batches first.

    `lengths` is as for `plan_epoch`. A pair too long for the bound of a part gets a
    batch of its own; one with a side above `longest`, if given, is left out.
    """
    used = np.arange(len(lengths))
    if longest is not None:
        used = np.flatnonzero(lengths.max(axis=1, initial=0) <= longest)
    groups = sort_and_cut(used, lengths, config.part_bound)
    return EpochPlan(
        order=groups.order,
        starts=groups.starts,
        counts=groups.counts,
        shapes=groups.shapes,
        firsts=np.arange(len(groups.starts)),
        dropped=len(lengths) - len(used),
        tokens=int(lengths[used].sum(dtype=np.int64)),
    )


def _usable(lengths: IntArray, config: BatchingConfig) -> IntArray:
    """Returns the numbers of the pairs that are short enough on both sides."""
    usable = np.flatnonzero(lengths.max(axis=1, initial=0) <= config.longest_usable)
    if not len(usable):
        raise UserError(
            f"none of {len(lengths)} pairs is at most {config.longest_usable} tokens "
            "long: raise max_length or tokens_per_batch, or check the data"
        )
    return usable


def _group(shuffled: IntArray, lengths: IntArray, config: BatchingConfig) -> Groups:
    """Cuts shuffled pairs, int64 (pairs used,), into parts of the chosen kind."""
    if config.kind == "sorted" and config.is_one_part:
        return sort_and_cut(shuffled, lengths, config.part_bound, config.rows_multiple)
    used = lengths[shuffled]
    bucket, widths = chosen_buckets(
        used,
        config.longest_usable,
        _shapes_for(used, config),
        config.part_bound if config.rows_multiple > 1 or not config.is_one_part else 0,
        config.rows_multiple,
    )
    return fill_buckets(
        shuffled, bucket, widths, config.part_bound, config.rows_multiple
    )


def _shapes_for(lengths: IntArray, config: BatchingConfig) -> int:
    """Returns how many shapes a corpus of int (pairs, 2) lengths is worth."""
    positions = int(lengths.max(axis=1).sum(dtype=np.int64))
    full_parts = positions // config.part_bound
    if config.kind == "sorted":
        return max(1, min(MOST_FREE_SHAPES, full_parts))
    if not config.parts_per_shape:
        return config.max_shapes
    return max(1, min(config.max_shapes, full_parts // config.parts_per_shape))


def _wider(shapes: IntArray) -> IntArray:
    """Returns the padded positions of the wider side of int (parts, 3) shapes."""
    return shapes[:, 0] * shapes[:, 1:].max(axis=1)
