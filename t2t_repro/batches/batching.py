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
from t2t_repro.batches.epoch_plan import EpochPlan, wider_sides
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
    sizes = wider_sides(groups.shapes)
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
