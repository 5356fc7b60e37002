"""Which parts make up a batch.

Parts are dealt like cards: the largest, as many as there are batches, one to each in
random order; then the next largest; and so on. So every batch gets parts of all sizes
and of many lengths, batches are nearly equal, and none is left nearly empty. Every
deal of the same sizes has as many batches, whatever its order.
"""

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.integer]


def fewest_batches(sizes: IntArray, tokens_per_batch: int) -> int:
    """Returns how many batches keep the bound in every deal.

    Args:
        sizes: int (parts,), positions of each part's wider side.
        tokens_per_batch: Upper bound of the sum of a batch's sizes; no size is above.
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
    """Deals parts to batches, in an order that is random.

    Args:
        sizes: int (parts,), positions of each part's wider side.
        batches: How many batches there are; no more than parts.
        rng: Where chance comes from.

    Returns:
        Part numbers int64 (parts,), batch after batch, the largest of a batch first;
        and the first position of each batch in it, int64 (batches,).
    """
    falling = np.argsort(-sizes, kind="stable")
    rounds = range(0, len(sizes), batches)
    batch = np.concatenate([rng.permutation(batches) for _ in rounds])[: len(sizes)]
    counts = np.bincount(batch, minlength=batches)
    return falling[np.argsort(batch, kind="stable")], np.cumsum(counts) - counts
