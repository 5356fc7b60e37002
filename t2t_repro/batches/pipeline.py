"""The tf.data pipeline: padded batches from encoded pairs, from any step on."""

from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import tensorflow as tf

from t2t_repro.batches.batching import (
    BatchingConfig,
    EpochPlan,
    plan_epoch,
    plan_evaluation,
)
from t2t_repro.batches.packed_batch import (
    BATCH_SIGNATURE,
    SIGNATURE,
    PackedBatch,
    pack,
    token_ratio_of,
)
from t2t_repro.data.encoded_pairs import Batch, EncodedPairs, IntArray

PARALLEL_GATHERS = 4
PREFETCHED_BATCHES = 16
# The memory of attention grows with the square: one line of a million characters
# would exhaust any machine.
LONGEST_EVALUATED = 4096

OwnParts = Callable[[int], Collection[int]]
"""Returns the micro-batches that a process computes, of a batch with that number."""

_Place = tuple[IntArray, IntArray, IntArray]
_PLACE = (
    tf.TensorSpec([None], tf.int64),  # pair numbers, part after part
    tf.TensorSpec([None], tf.int64),  # pairs of each part
    tf.TensorSpec([None, 3], tf.int64),  # its rows, source width and target width
)


def batches(
    pairs: EncodedPairs,
    config: BatchingConfig,
    seed: int,
    start_step: int = 0,
    own: OwnParts = range,
) -> tf.data.Dataset:
    """Returns a training's batches (`packed_batch.SIGNATURE`), without end.

    The batch of a step is a function of the arguments and the step only: a training
    that resumes passes its number of finished steps as `start_step`. Every epoch has
    the same number of batches, so a division and one plan find the place. Only the
    parts that are the process's `own` are gathered; every process plans all, in a
    thread. If no pair is short enough to be used, that is a UserError.
    """
    plan_of = partial(plan_epoch, pairs.lengths, config, seed)
    first_epoch = plan_of(0)

    def places() -> Iterator[_Place]:
        epoch, first = divmod(start_step, first_epoch.batches)
        # Seconds at WMT size: the next epoch is planned while this one is read.
        with ThreadPoolExecutor(1) as planner:
            plan = plan_of(epoch) if epoch else first_epoch
            while True:
                epoch += 1
                following = planner.submit(plan_of, epoch)
                yield from _batch_places(plan, first)
                plan, first = following.result(), 0

    def read(indices: IntArray, counts: IntArray, shapes: IntArray) -> PackedBatch:
        members, ours = np.split(indices, np.cumsum(counts)[:-1]), own(len(shapes))
        rectangles = [
            pairs.gather(members[number], (rows, source, target))
            if number in ours
            else None
            for number, (rows, source, target) in enumerate(shapes.tolist())
        ]
        tokens = int(pairs.lengths[indices].sum(dtype=np.int64))
        positions = int((shapes[:, 0] * (shapes[:, 1] + shapes[:, 2])).sum())
        return pack(*rectangles, token_ratio=token_ratio_of(tokens, positions))

    return _read_ahead(places, read, SIGNATURE)


def eval_batches(
    pairs: EncodedPairs, config: BatchingConfig, process: int = 0, of: int = 1
) -> tf.data.Dataset:
    """Returns one pass over the pairs, shortest first, in batches of one part.

    Each of the `of` processes gets different batches. Pairs with a side of more than
    `LONGEST_EVALUATED` tokens are skipped. Elements are `inputs` int32 (rows, source)
    and `targets` int32 (rows, target).
    """
    plan = plan_evaluation(pairs.lengths, config, LONGEST_EVALUATED)

    def read(indices: IntArray, counts: IntArray, shapes: IntArray) -> Batch:
        rows, source, target = shapes[0].tolist()
        return pairs.gather(indices, (rows, source, target))

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
    """Returns the pairs that `batches` has at a step, their numbers int64 (pairs,)."""
    per_epoch = plan_epoch(pairs.lengths, config, seed, epoch=0).batches
    epoch, batch = divmod(step, per_epoch)
    return plan_epoch(pairs.lengths, config, seed, epoch).indices(batch)


def _batch_places(plan: EpochPlan, first: int = 0) -> Iterator[_Place]:
    """Yields the pairs, counts and shapes of each batch, from batch `first` on."""
    for batch in range(first, plan.batches):
        parts = plan.parts_of(batch)
        yield plan.indices(batch), plan.counts[parts], plan.shapes[parts]


def _read_ahead(
    places: Callable[[], Iterator[_Place]],
    read: Callable[[IntArray, IntArray, IntArray], Mapping[str, Any]],
    signature: Mapping[str, tf.TensorSpec],
) -> tf.data.Dataset:
    """Reads the batches ahead of their use, several at once, in order."""

    def values(*place: IntArray) -> list[Any]:
        batch = read(*place)
        return [batch[name] for name in signature]

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
