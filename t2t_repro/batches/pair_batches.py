"""Batches of similar length from sentence pairs in memory."""

from collections.abc import Iterator, Sequence

from t2t_repro.batches.batching import BatchingConfig, plan_evaluation
from t2t_repro.data.encoded_pairs import Batch, EncodedPairs, IntArray


def pair_batches(
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    tokens_per_batch: int,
) -> Iterator[tuple[IntArray, Batch]]:
    """Yields all pairs in batches of similar length, shortest first.

    Args:
        sources: Token ids of each source sentence, ending in EOS.
        targets: Token ids of each target sentence, ending in EOS.
        tokens_per_batch: Upper bound on rows x longer side; a longer pair becomes a
            batch of one.

    Yields:
        Pair numbers, int64 (rows,), and the batch: `inputs` int32 (rows, source) and
        `targets` int32 (rows, target), padded with 0.
    """
    if not sources:
        return
    pairs = EncodedPairs.from_lists(sources, targets)
    plan = plan_evaluation(pairs.lengths, BatchingConfig(tokens_per_batch))
    for batch in range(plan.batches):
        places = plan.indices(batch)
        yield places, pairs.gather(places)
