"""Assignment of micro-batches to batches.

Micro-batches are dealt like cards, from the largest to the smallest: each round gives
every batch one micro-batch, in random order. All batches therefore have nearly equal
sizes and mix many sentence lengths. The number of batches depends only on the sizes of
the micro-batches, not on the random order.
"""

import numpy as np

from t2t_repro.data.encoded_pairs import IntArray


def fewest_batches(sizes: IntArray, tokens_per_batch: int) -> int:
    """Returns the smallest number of batches for which `deal` never exceeds the bound.

    Args:
        sizes: int (micro-batches,), positions of the wider side of each micro-batch; at
            most `tokens_per_batch`.
        tokens_per_batch: Upper bound on the sum of sizes in a batch.
    """
    falling = np.sort(sizes)[::-1]
    batches = -(-int(sizes.sum(dtype=np.int64)) // tokens_per_batch)
    # In the worst case, one batch gets the largest micro-batch of every round.
    while falling[::batches].sum(dtype=np.int64) > tokens_per_batch:
        batches += 1
    return batches


def deal(
    sizes: IntArray, batches: int, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Assigns micro-batches to at most `batches` batches at random.

    `sizes` is int (micro-batches,), positions of the wider side of each. Returns
    micro-batch numbers grouped by batch, largest first in each, int64 (micro-batches,);
    and the index of each batch's first entry, int64 (batches,).
    """
    falling = np.argsort(-sizes, kind="stable")
    rounds = range(0, len(sizes), batches)
    batch = np.concatenate([rng.permutation(batches) for _ in rounds])[: len(sizes)]
    counts = np.bincount(batch, minlength=batches)
    return falling[np.argsort(batch, kind="stable")], np.cumsum(counts) - counts
