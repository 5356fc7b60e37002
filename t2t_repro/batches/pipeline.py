"""tf.data pipeline: padded batches of encoded pairs, starting at any step."""

from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import tensorflow as tf

from t2t_repro.batches.batching import BatchingConfig, plan_epoch, plan_evaluation
from t2t_repro.batches.epoch_plan import EpochPlan
from t2t_repro.batches.packed_batch import (
    BATCH_SIGNATURE,
    SIGNATURE,
    PackedBatch,
    pack,
)
from t2t_repro.data.encoded_pairs import Batch, EncodedPairs, IntArray

PARALLEL_GATHERS = 4
PREFETCHED_BATCHES = 16
# Attention needs memory proportional to the square of the length: a line of a million
# characters would exhaust any machine.
LONGEST_EVALUATED = 4096

OwnParts = Callable[[int], Collection[int]]
"""Maps the number of micro-batches in a batch to those that the process computes."""

_Place = tuple[IntArray, IntArray, IntArray, IntArray]
_PLACE = (
    tf.TensorSpec([None], tf.int64),  # Pair numbers, grouped by micro-batch.
    tf.TensorSpec([None], tf.int64),  # Row of each pair in its micro-batch.
    tf.TensorSpec([None], tf.int64),  # Number of pairs in each micro-batch.
    tf.TensorSpec([None, 3], tf.int64),  # Rows, source width and target width of each.
)


def batches(
    pairs: EncodedPairs,
    config: BatchingConfig,
    seed: int,
    start_step: int = 0,
    own: OwnParts = range,
) -> tf.data.Dataset:
    """Returns an infinite dataset of training batches (`packed_batch.SIGNATURE`).

    The batch of a step depends only on the arguments and the step. All epochs have the
    same number of batches, so `start_step` determines the epoch and the batch in it.

    Args:
        pairs: Encoded training pairs.
        config: Batching settings.
        seed: Seed of the training run.
        start_step: Number of finished steps.
        own: Returns the micro-batches that this process computes; others stay empty.

    Raises:
        UserError: If no pair is short enough.
    """
    plan_of = partial(plan_epoch, pairs.lengths, config, seed)
    first_epoch = plan_of(0)

    def places() -> Iterator[_Place]:
        epoch, first = divmod(start_step, first_epoch.batches)
        # Planning takes seconds for WMT, so the next epoch is planned in advance.
        with ThreadPoolExecutor(1) as planner:
            plan = plan_of(epoch) if epoch else first_epoch
            while True:
                epoch += 1
                following = planner.submit(plan_of, epoch)
                yield from _batch_places(plan, first)
                plan, first = following.result(), 0

    def read(
        indices: IntArray, rows: IntArray, counts: IntArray, shapes: IntArray
    ) -> PackedBatch:
        cuts, ours = np.cumsum(counts)[:-1], own(len(shapes))
        members, rows_of = np.split(indices, cuts), np.split(rows, cuts)
        rectangles = [
            pairs.gather(*microbatch) if number in ours else None
            for number, microbatch in enumerate(
                zip(members, shapes.tolist(), rows_of, strict=True)
            )
        ]
        tokens = int(pairs.lengths[indices].sum(dtype=np.int64))
        positions = int((shapes[:, 0] * (shapes[:, 1] + shapes[:, 2])).sum())
        return pack(*rectangles, token_ratio=tokens / positions)

    return _read_ahead(places, read, SIGNATURE)


def eval_batches(
    pairs: EncodedPairs, config: BatchingConfig, process: int = 0, of: int = 1
) -> tf.data.Dataset:
    """Returns a dataset of one pass over the pairs, shortest first.

    Elements are batches of one micro-batch: `inputs` int32 (rows, source) and `targets`
    int32 (rows, target). Pairs with a side of more than `LONGEST_EVALUATED` tokens are
    skipped.

    Process number `process`, from 0, of `of` processes gets every `of`-th batch.
    """
    plan = plan_evaluation(pairs.lengths, config, LONGEST_EVALUATED)

    def read(
        indices: IntArray, rows: IntArray, counts: IntArray, shapes: IntArray
    ) -> Batch:
        return pairs.gather(indices, shapes[0].tolist(), rows)

    return _read_ahead(
        lambda: islice(_batch_places(plan), process, None, of),
        read,
        dict(zip(("inputs", "targets"), BATCH_SIGNATURE, strict=True)),
    ).apply(
        tf.data.experimental.assert_cardinality(len(range(process, plan.batches, of)))
    )


def pair_numbers(
    pairs: EncodedPairs, config: BatchingConfig, seed: int, step: int
) -> IntArray:
    """Returns the pair numbers of the batch of a step, int64 (pairs,)."""
    per_epoch = plan_epoch(pairs.lengths, config, seed, epoch=0).batches
    epoch, batch = divmod(step, per_epoch)
    return plan_epoch(pairs.lengths, config, seed, epoch).indices(batch)


def _batch_places(plan: EpochPlan, first: int = 0) -> Iterator[_Place]:
    """Yields numbers, rows, counts and shapes of each batch, starting at `first`."""
    for batch in range(first, plan.batches):
        own = plan.microbatch_range(batch)
        rows = plan.pair_rows(batch)
        yield plan.indices(batch), rows, plan.counts[own], plan.shapes[own]


def _read_ahead(
    places: Callable[[], Iterator[_Place]],
    read: Callable[[IntArray, IntArray, IntArray, IntArray], Mapping[str, Any]],
    signature: Mapping[str, tf.TensorSpec],
) -> tf.data.Dataset:
    """Returns a dataset that reads batches in parallel and prefetches them in order."""

    def values(*place: IntArray) -> list[Any]:
        batch = read(*place)
        return [batch[name] for name in signature]

    @tf.autograph.experimental.do_not_convert
    def element(*place: tf.Tensor) -> dict[str, tf.Tensor]:
        types = [spec.dtype for spec in signature.values()]
        batch = tf.numpy_function(values, place, types, stateful=False)
        return {
            name: tf.ensure_shape(value, spec.shape)
            for (name, spec), value in zip(signature.items(), batch, strict=True)
        }

    return (
        tf.data.Dataset.from_generator(places, output_signature=_PLACE)
        .map(element, num_parallel_calls=PARALLEL_GATHERS, deterministic=True)
        .prefetch(PREFETCHED_BATCHES)
    )
