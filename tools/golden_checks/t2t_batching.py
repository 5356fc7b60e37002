"""tensor2tensor's batching of training pairs by length."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Batching(NamedTuple):
    """Buckets of pairs.

    Attributes:
        boundaries: int64 (buckets - 1,), tokens; a pair of length L falls into the
            first bucket whose boundary is above L, else into the last.
        batch_sizes: int64 (buckets,), sentence pairs of all devices together.
        max_length: the longest pair in tokens that is kept.
        shuffle_queue_size: batches shuffled together.
    """

    boundaries: npt.NDArray[np.int64]
    batch_sizes: npt.NDArray[np.int64]
    max_length: int
    shuffle_queue_size: int


def t2t_batching(batch_size: int, max_length: int, devices: int = 1) -> Batching:
    """Computes tensor2tensor's batching (utils/data_reader.py:batching_scheme).

    Each bucket holds as many pairs as fit `batch_size` tokens at its boundary, rounded
    down to a divisor of one window for all buckets: the largest highly composite number
    of at most three times the largest bucket. Tokens are of the longer side, per
    device; a `max_length` of 0 stands for `batch_size`.
    """
    longest = max_length or batch_size
    boundaries = _boundaries(longest)
    full = [max(1, batch_size // length) for length in (*boundaries, longest)]
    window = _highly_composite(3 * max(full))
    divisors = np.array([n for n in range(1, window + 1) if window % n == 0])
    sizes = divisors[np.searchsorted(divisors, full, side="right") - 1]
    return Batching(
        boundaries=np.array(boundaries),
        batch_sizes=sizes * devices,
        max_length=longest,
        shuffle_queue_size=3 * int(window // sizes.min()),
    )


def _boundaries(longest: int) -> list[int]:
    """Returns 8 and what grows from it by a tenth, at least by 1, below `longest`."""
    boundaries, boundary = [], 8
    while boundary < longest:
        boundaries.append(boundary)
        boundary = max(boundary + 1, int(boundary * 1.1))
    return boundaries


def _highly_composite(bound: int) -> int:
    """Returns the largest number up to a bound with more divisors than any smaller."""
    divisors = np.zeros(bound + 1, np.int64)
    for n in range(1, bound + 1):
        divisors[n::n] += 1
    # Of equal counts argmax takes the first, which is the highly composite one.
    return int(divisors.argmax())
