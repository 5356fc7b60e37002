"""The arithmetic of batches: which pairs share a batch, and in what shape.

The plan of an epoch is a pure function of the pairs' lengths, the configuration, the
seed and the epoch's number. Nothing else remembers a place in the data, so a training
resumes at any step by computing the plan again and starting at a batch's index.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from t2t_repro.data.buckets import chosen_buckets
from t2t_repro.data.grouping import Groups, fill_buckets, sort_and_cut
from t2t_repro.data.t2t_boundaries import t2t_widths
from t2t_repro.errors import UserError

IntArray = npt.NDArray[np.integer]

KINDS = ("sorted", "buckets", "t2t_buckets")


@dataclass(frozen=True)
class BatchingConfig:
    """How pairs are made into batches.

    Attributes:
        tokens_per_batch: Upper bound of the padded positions of each side of a global
            batch, filler rows included: rows x longest source and rows x longest
            target stay at or below it. (Paper section 5.1: about 25,000 source and
            25,000 target tokens. T2T: `batch_size` bounds one GPU's share instead.)
        kind: `sorted`: pairs sorted by their longer side, batches as full as the
            bound allows, each padded to its own longest source and target.
            `buckets`: at most `max_shapes` static shapes, chosen for the corpus; the
            least padding. `t2t_buckets`: static shapes at tensor2tensor's boundaries.
        max_length: Longest side in tokens, EOS included, of a pair that is used.
        rows_multiple: Number of rows is a multiple of this (replicas x accumulated
            micro-batches); rows that are missing are filler rows, all zeros.
        max_shapes: Upper bound of the shapes of kind `buckets`. More shapes mean less
            padding.
        batches_per_shape: With kind `buckets`, there are at least so many full
            batches for every shape: the last batch of each shape is not full, so a
            small corpus in many shapes would be trained on in batches much smaller
            than `tokens_per_batch`. 0 sets no such bound.
    """

    tokens_per_batch: int
    kind: str = "sorted"
    max_length: int = 256
    rows_multiple: int = 1
    max_shapes: int = 48
    batches_per_shape: int = 2

    def __post_init__(self) -> None:
        """Refuses values that describe no batch.

        Raises:
            UserError: for an unknown kind or a number below 1.
        """
        if self.kind not in KINDS:
            known = ", ".join(KINDS)
            raise UserError(
                f"batching kind {self.kind!r} is unknown: use one of {known}"
            )
        for name in ("tokens_per_batch", "max_length", "rows_multiple", "max_shapes"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} is {getattr(self, name)}: give 1 or more")

    @property
    def longest_usable(self) -> int:
        """Longest side in tokens that `max_length` and one whole batch can hold."""
        return min(self.max_length, self.tokens_per_batch // self.rows_multiple)


@dataclass(frozen=True)
class EpochPlan:
    """One epoch's batches, in the order in which they are trained on.

    Attributes:
        order: int64 (pairs used,), pair numbers; a batch is a run of it.
        starts: int64 (batches,), first position of each batch in `order`.
        counts: int64 (batches,), pairs in each batch.
        shapes: int64 (batches, 3): rows with filler rows, source and target width.
        dropped: Pairs left out because a side is too long.
        tokens: Tokens in all batches, both sides, EOS included.
    """

    order: IntArray
    starts: IntArray
    counts: IntArray
    shapes: IntArray
    dropped: int
    tokens: int

    @property
    def batches(self) -> int:
        """Number of batches, which is the same in every epoch."""
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
    def fullness(self) -> float:
        """Mean of rows x wider side over the largest batch's: 1.0 if all are equal."""
        sizes = self.shapes[:, 0] * self.shapes[:, 1:].max(axis=1)
        return float(sizes.mean() / sizes.max())

    @property
    def share(self) -> float:
        """Non-padding tokens over padded positions, filler rows counted."""
        return self.tokens / self.positions

    def indices(self, batch: int) -> IntArray:
        """Returns the pair numbers of a batch, int64 (pairs,)."""
        start = self.starts[batch]
        return self.order[start : start + self.counts[batch]]

    def summary(self) -> str:
        """Describes the plan in one line for a log."""
        return (
            f"{self.pairs:,} pairs ({self.dropped:,} too long left out) in "
            f"{self.batches:,} batches of {self.distinct_shapes:,} shapes, "
            f"{self.share:.1%} of the positions are tokens, batches are "
            f"{self.fullness:.0%} as large as the largest"
        )


def plan_epoch(
    lengths: IntArray, config: BatchingConfig, seed: int, epoch: int
) -> EpochPlan:
    """Plans an epoch: every usable pair in exactly one batch.

    The number of batches, and with static kinds their shapes, depend on lengths and
    config alone; the membership and the order of the batches are new in every epoch.

    Args:
        lengths: int (pairs, 2), source and target tokens of each pair, EOS included.
        config: How batches are made.
        seed: The training's seed.
        epoch: Number of the epoch, from 0.

    Raises:
        UserError: when no pair is short enough to be used.
    """
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, epoch])))
    usable = _usable(lengths, config)
    shuffled = rng.permutation(usable)
    groups = _group(shuffled, lengths, config)
    batch_order = rng.permutation(len(groups.starts))
    return EpochPlan(
        order=groups.order,
        starts=groups.starts[batch_order],
        counts=groups.counts[batch_order],
        shapes=groups.shapes[batch_order],
        dropped=len(lengths) - len(usable),
        tokens=int(lengths[usable].sum(dtype=np.int64)),
    )


def plan_evaluation(
    lengths: IntArray, config: BatchingConfig, longest: int | None = None
) -> EpochPlan:
    """Plans one pass over all pairs, shortest batches first.

    A pair too long for `tokens_per_batch` gets a batch of its own.

    Args:
        lengths: int (pairs, 2), source and target tokens of each pair, EOS included.
        config: Only `tokens_per_batch` and `rows_multiple` are used.
        longest: Leave out pairs with a longer side; None leaves nothing out.
    """
    used = np.arange(len(lengths))
    if longest is not None:
        used = np.flatnonzero(lengths.max(axis=1, initial=0) <= longest)
    groups = sort_and_cut(used, lengths, config.tokens_per_batch, config.rows_multiple)
    return EpochPlan(
        order=groups.order,
        starts=groups.starts,
        counts=groups.counts,
        shapes=groups.shapes,
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


def _group(
    shuffled: IntArray,
    lengths: IntArray,
    config: BatchingConfig,
) -> Groups:
    """Cuts shuffled pairs, int64 (pairs used,), into batches of the chosen kind."""
    bounds = config.tokens_per_batch, config.rows_multiple
    if config.kind == "sorted":
        return sort_and_cut(shuffled, lengths, *bounds)
    if config.kind == "t2t_buckets":
        widths: IntArray = t2t_widths(config.longest_usable)
        longer = lengths[shuffled].max(axis=1)
        bucket: IntArray = np.searchsorted(widths[:, 0], longer)
    else:
        used = lengths[shuffled]
        shapes = _shapes_for(used, config)
        bucket, widths = chosen_buckets(used, config.longest_usable, shapes)
    return fill_buckets(shuffled, bucket, widths, *bounds)


def _shapes_for(lengths: IntArray, config: BatchingConfig) -> int:
    """Returns how many static shapes a corpus of int (pairs, 2) lengths is worth."""
    if not config.batches_per_shape:
        return config.max_shapes
    positions = int(lengths.max(axis=1).sum(dtype=np.int64))
    full_batches = positions // config.tokens_per_batch
    return max(1, min(config.max_shapes, full_batches // config.batches_per_shape))
