"""Given sentence pairs, in batches of similar lengths."""

from collections.abc import Iterator, Sequence

from t2t_repro.batches.batching import BatchingConfig, plan_evaluation
from t2t_repro.data.encoded_pairs import Batch, EncodedPairs, IntArray


def pair_batches(
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    tokens_per_batch: int,
) -> Iterator[tuple[IntArray, Batch]]:
    """Yields every pair of ids that end in EOS once, the shortest first.

    Each batch is the pairs' numbers, int64 (rows,), and `inputs` int32 (rows, source)
    and `targets` int32 (rows, target), 0-padded; a pair longer than `tokens_per_batch`
    is a batch of its own.
    """
    if not sources:
        return
    pairs = EncodedPairs.from_lists(sources, targets)
    plan = plan_evaluation(pairs.lengths, BatchingConfig(tokens_per_batch))
    for batch in range(plan.batches):
        places = plan.indices(batch)
        yield places, pairs.gather(places)
