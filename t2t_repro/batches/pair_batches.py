"""Given sentence pairs, in batches of similar lengths."""

from collections.abc import Iterator, Sequence

from t2t_repro.batches.batching import BatchingConfig, plan_evaluation
from t2t_repro.data.encoded_pairs import Batch, EncodedPairs, IntArray


def pair_batches(
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    tokens_per_batch: int,
) -> Iterator[tuple[IntArray, Batch]]:
    """Yields every pair once, the shortest first.

    Args:
        sources: ids that end in EOS.
        targets: as many.
        tokens_per_batch: most padded positions of either side of a batch; a longer
            pair is a batch of its own.

    Yields:
        The pairs' numbers, int64 (rows,), and `inputs` int32 (rows, source) and
        `targets` int32 (rows, target), 0-padded.
    """
    if not sources:
        return
    pairs = EncodedPairs.from_lists(sources, targets)
    plan = plan_evaluation(pairs.lengths, BatchingConfig(tokens_per_batch))
    for batch in range(plan.batches):
        places = plan.indices(batch)
        yield places, pairs.gather(places)
