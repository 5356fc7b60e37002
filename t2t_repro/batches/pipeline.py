"""tf.data pipeline: padded batches of encoded pairs, starting at any step."""

from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count, islice
from typing import Any

import numpy as np
import tensorflow as tf

from t2t_repro.batches.batching import BatchingConfig, plan_epoch, plan_evaluation
from t2t_repro.batches.epoch_plan import EpochPlan
from t2t_repro.batches.mixture import Mixture
from t2t_repro.batches.packed_batch import (
    BATCH_SIGNATURE,
    SIGNATURE,
    PackedBatch,
    pack,
)
from t2t_repro.data.encoded_pairs import Batch, EncodedPairs, Ids, IntArray

PARALLEL_GATHERS = 4
PREFETCHED_BATCHES = 16
# Attention needs memory proportional to the square of the length: a line of a million
# characters would exhaust any machine.
LONGEST_EVALUATED = 4096

OwnParts = Callable[[int], Collection[int]]
"""Maps the number of micro-batches in a batch to those that the process computes."""

Change = Callable[[Ids, IntArray, int], Ids]
"""Changes the sources of a micro-batch, given pair numbers and epoch."""

_Place = tuple[IntArray, IntArray, IntArray, IntArray, int]
_PLACE = (
    tf.TensorSpec([None], tf.int64),  # Pair numbers, grouped by micro-batch.
    tf.TensorSpec([None], tf.int64),  # Row of each pair in its micro-batch.
    tf.TensorSpec([None], tf.int64),  # Number of pairs in each micro-batch.
    tf.TensorSpec([None, 3], tf.int64),  # Rows, source width and target width of each.
    tf.TensorSpec([], tf.int64),  # Number of the epoch.
)


def batches(
    pairs: EncodedPairs,
    config: BatchingConfig,
    seed: int,
    start_step: int = 0,
    own: OwnParts = range,
    mixture: Mixture | None = None,
    change: Change | None = None,
) -> tf.data.Dataset:
    """Returns an infinite dataset of training batches (`packed_batch.SIGNATURE`).

    The batch of a step depends only on the arguments and the step. All epochs of a
    corpus have the same number of batches, so `start_step` determines the epoch and
    the batch in it.

    Args:
        pairs: Encoded training pairs.
        config: Batching settings.
        seed: Seed of the training run.
        start_step: Number of finished steps.
        own: Returns the micro-batches that this process computes; others stay empty.
        mixture: Order of several corpora in `pairs`. Default: a single corpus.
        change: Changes sources; see `Augmentation.change`. Default: no change. Shapes
            and token ratio of the pipeline are those of unchanged sources.

    Raises:
        UserError: If no pair of a corpus is short enough.
    """
    order = mixture or Mixture((len(pairs.lengths),), (1,))
    planners = _plan_corpora(pairs, config, seed, order)
    first_epochs = [plan_of(0) for plan_of in planners]

    def places() -> Iterator[_Place]:
        corpora = [
            _corpus_places(plan_of, first_epoch, order.batches_before(start_step, n))
            for n, (plan_of, first_epoch) in enumerate(
                zip(planners, first_epochs, strict=True)
            )
        ]
        for step in count(start_step):
            corpus = order.corpus(step)
            indices, *others = next(corpora[corpus])
            yield indices + order.pairs(corpus).start, *others

    def read(*place: IntArray) -> PackedBatch:
        indices, rows, counts, shapes, epoch = place
        cuts, ours = np.cumsum(counts)[:-1], own(len(shapes))
        members, rows_of = np.split(indices, cuts), np.split(rows, cuts)
        rectangles = [
            pairs.gather(*microbatch) if number in ours else None
            for number, microbatch in enumerate(
                zip(members, shapes.tolist(), rows_of, strict=True)
            )
        ]
        for numbers, rectangle in zip(members, rectangles, strict=True):
            if change is not None and rectangle is not None:
                rectangle["inputs"] = change(rectangle["inputs"], numbers, int(epoch))
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

    def read(*place: IntArray) -> Batch:
        indices, rows, _, shapes, _ = place
        return pairs.gather(indices, shapes[0].tolist(), rows)

    return _read_ahead(
        lambda: islice(_batch_places(plan), process, None, of),
        read,
        dict(zip(("inputs", "targets"), BATCH_SIGNATURE, strict=True)),
    ).apply(
        tf.data.experimental.assert_cardinality(len(range(process, plan.batches, of)))
    )


def pair_numbers(
    pairs: EncodedPairs,
    config: BatchingConfig,
    seed: int,
    step: int,
    mixture: Mixture | None = None,
) -> IntArray:
    """Returns the pair numbers of the batch of a step, int64 (pairs,).

    The arguments are those of `batches`.
    """
    order = mixture or Mixture((len(pairs.lengths),), (1,))
    corpus = order.corpus(step)
    plan_of = _plan_corpora(pairs, config, seed, order)[corpus]
    number = order.batches_before(step, corpus)
    epoch, batch = divmod(number, plan_of(0).batches)
    return plan_of(epoch).indices(batch) + order.pairs(corpus).start


def _plan_corpora(
    pairs: EncodedPairs, config: BatchingConfig, seed: int, mixture: Mixture
) -> list[Callable[[int], EpochPlan]]:
    """Returns for each corpus a function that plans an epoch, given its number."""
    return [
        partial(plan_epoch, pairs.lengths[mixture.pairs(corpus)], config, seed)
        for corpus in range(len(mixture.sizes))
    ]


def _corpus_places(
    plan_of: Callable[[int], EpochPlan], first_epoch: EpochPlan, start: int
) -> Iterator[_Place]:
    """Yields the places of a corpus's batches over all epochs, from batch `start`."""
    epoch, first = divmod(start, first_epoch.batches)
    # Planning takes seconds for WMT, so the next epoch is planned in advance.
    with ThreadPoolExecutor(1) as planner:
        plan = plan_of(epoch) if epoch else first_epoch
        while True:
            epoch += 1
            following = planner.submit(plan_of, epoch)
            yield from _batch_places(plan, first, epoch - 1)
            plan, first = following.result(), 0


def _batch_places(plan: EpochPlan, first: int = 0, epoch: int = 0) -> Iterator[_Place]:
    """Yields the place of each batch of an epoch, starting at `first`."""
    for batch in range(first, plan.batches):
        own = plan.microbatch_range(batch)
        rows = plan.pair_rows(batch)
        yield plan.indices(batch), rows, plan.counts[own], plan.shapes[own], epoch


def _read_ahead(
    places: Callable[[], Iterator[_Place]],
    read: Callable[..., Mapping[str, Any]],
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
