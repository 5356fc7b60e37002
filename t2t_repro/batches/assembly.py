"""Which parts make up a batch.

Parts are dealt like cards: the largest, as many as there are batches, one to each in
random order; then the next largest; and so on. So every batch gets parts of all sizes
and of many lengths, batches are nearly equal, and none is left nearly empty. Every
deal of the same sizes has as many batches, whatever its order.
"""

import numpy as np

from t2t_repro.data.encoded_pairs import IntArray


def fewest_batches(sizes: IntArray, tokens_per_batch: int) -> int:
    """Returns how many batches of at most `tokens_per_batch` every deal fits into.

    `sizes` is int (parts,), positions of each part's wider side; none is above.
    """
    falling = np.sort(sizes)[::-1]
    batches = -(-int(sizes.sum(dtype=np.int64)) // tokens_per_batch)
    # At worst a batch gets the largest part of every round.
    while falling[::batches].sum(dtype=np.int64) > tokens_per_batch:
        batches += 1
    return batches


def deal(
    sizes: IntArray, batches: int, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Deals parts to at most as many batches at random.

    `sizes` is int (parts,), positions of each part's wider side. Returns part numbers
    int64 (parts,), batch after batch, the largest of a batch first; and where each
    batch begins, int64 (batches,).
    """
    falling = np.argsort(-sizes, kind="stable")
    rounds = range(0, len(sizes), batches)
    batch = np.concatenate([rng.permutation(batches) for _ in rounds])[: len(sizes)]
    counts = np.bincount(batch, minlength=batches)
    return falling[np.argsort(batch, kind="stable")], np.cumsum(counts) - counts
