"""The tf.data pipeline: padded batches from encoded pairs, from any step on."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import tensorflow as tf

from t2t_repro.data.batching import (
    BatchingConfig,
    EpochPlan,
    IntArray,
    plan_epoch,
    plan_evaluation,
)
from t2t_repro.data.encoded_pairs import EncodedPairs

PARALLEL_GATHERS = 4
PREFETCHED_BATCHES = 16
# The memory of attention grows with the square: one line of a million characters
# would exhaust any machine.
LONGEST_EVALUATED = 4096

_SIGNATURE = (
    tf.TensorSpec([None], tf.int64),  # pair numbers
    tf.TensorSpec([3], tf.int64),  # rows, source width, target width
)


def batches(
    pairs: EncodedPairs, config: BatchingConfig, seed: int, start_step: int = 0
) -> tf.data.Dataset:
    """Returns the global batches of a training, epoch after epoch without end.

    The batch of a step depends on pairs, config, seed and the step alone; a training
    that resumes passes the number of finished steps. The number of batches is the
    same in every epoch, so the place is found by a division and one epoch's plan.

    Args:
        pairs: The encoded training pairs.
        config: How batches are made.
        seed: The training's seed.
        start_step: Global batch with which to begin, counted from the training's
            first.

    Returns:
        Elements `inputs` int32 (rows, source), `targets` int32 (rows, target).

    Raises:
        UserError: when no pair is short enough to be used.
    """
    first_epoch = plan_epoch(pairs.lengths, config, seed, epoch=0)

    def places() -> Iterator[tuple[IntArray, IntArray]]:
        epoch, first = divmod(start_step, first_epoch.batches)
        # Seconds at WMT size: the next epoch is planned while this one is read.
        with ThreadPoolExecutor(1) as planner:
            plan = first_epoch
            if epoch > 0:
                plan = plan_epoch(pairs.lengths, config, seed, epoch)
            while True:
                epoch += 1
                following = planner.submit(
                    plan_epoch, pairs.lengths, config, seed, epoch
                )
                yield from _batch_places(plan, first)
                plan, first = following.result(), 0

    places_read = tf.data.Dataset.from_generator(places, output_signature=_SIGNATURE)
    return _gathered(pairs, places_read)


def eval_batches(pairs: EncodedPairs, config: BatchingConfig) -> tf.data.Dataset:
    """Returns one pass over the pairs, shortest first.

    None is left out but those with a side of more than `LONGEST_EVALUATED` tokens.

    Args:
        pairs: The encoded pairs of a validation or test split.
        config: Only `tokens_per_batch` and `rows_multiple` are used.

    Returns:
        Elements `inputs` int32 (rows, source), `targets` int32 (rows, target).
    """
    plan = plan_evaluation(pairs.lengths, config, LONGEST_EVALUATED)
    places = tf.data.Dataset.from_generator(
        lambda: _batch_places(plan), output_signature=_SIGNATURE
    )
    return _gathered(pairs, places).apply(
        tf.data.experimental.assert_cardinality(plan.batches)
    )


def pair_numbers(
    pairs: EncodedPairs, config: BatchingConfig, seed: int, step: int
) -> IntArray:
    """Returns the numbers of the pairs trained on at a step, int64 (pairs,).

    Args:
        pairs: The encoded training pairs.
        config: As given to `batches`.
        seed: As given to `batches`.
        step: Global batch, counted from the training's first.
    """
    per_epoch = plan_epoch(pairs.lengths, config, seed, epoch=0).batches
    epoch, batch = divmod(step, per_epoch)
    return plan_epoch(pairs.lengths, config, seed, epoch).indices(batch)


def _batch_places(
    plan: EpochPlan, first: int = 0
) -> Iterator[tuple[IntArray, IntArray]]:
    """Yields pair numbers and shape of each batch of a plan from `first` on."""
    for batch in range(first, plan.batches):
        yield plan.indices(batch), plan.shapes[batch]


def _gathered(pairs: EncodedPairs, places: tf.data.Dataset) -> tf.data.Dataset:
    """Reads the batches ahead of their use, several at once, in order."""

    def read(indices: IntArray, shape: IntArray) -> tuple[np.ndarray, np.ndarray]:
        rows, source, target = (int(n) for n in shape)
        batch = pairs.gather(indices, (rows, source, target))
        return batch["inputs"], batch["targets"]

    def element(indices: tf.Tensor, shape: tf.Tensor) -> dict[str, tf.Tensor]:
        inputs, targets = tf.numpy_function(
            read, [indices, shape], [tf.int32, tf.int32], stateful=False
        )
        return {
            "inputs": tf.ensure_shape(inputs, [None, None]),
            "targets": tf.ensure_shape(targets, [None, None]),
        }

    return places.map(
        element, num_parallel_calls=PARALLEL_GATHERS, deterministic=True
    ).prefetch(PREFETCHED_BATCHES)
