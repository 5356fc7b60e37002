"""tensor2tensor's batching of training pairs by length."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Batching(NamedTuple):
    """Length buckets and their batch sizes.

    Attributes:
        boundaries: int64 (buckets - 1,), in tokens. A pair of length L falls into the
            first bucket whose boundary is above L, or else into the last bucket.
        batch_sizes: int64 (buckets,), sentence pairs on all devices together.
        max_length: Maximum length of a pair in tokens; longer pairs are skipped.
        shuffle_queue_size: Number of batches in the shuffle buffer.
    """

    boundaries: npt.NDArray[np.int64]
    batch_sizes: npt.NDArray[np.int64]
    max_length: int
    shuffle_queue_size: int


def t2t_batching(batch_size: int, max_length: int, devices: int = 1) -> Batching:
    """Computes tensor2tensor's batching (utils/data_reader.py:batching_scheme).

    The batch size of a bucket is the number of pairs of the boundary's length that fit
    into `batch_size` tokens, rounded down to a divisor of the window. The window is the
    largest highly composite number up to three times the largest batch size.

    Args:
        batch_size: Number of tokens of the longer side per device.
        max_length: Maximum length of a pair; 0 means `batch_size`.
        devices: Number of devices.
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
    """Returns the boundaries below `longest`: from 8, each 10 % (at least 1) larger."""
    boundaries, boundary = [], 8
    while boundary < longest:
        boundaries.append(boundary)
        boundary = max(boundary + 1, int(boundary * 1.1))
    return boundaries


def _highly_composite(bound: int) -> int:
    """Returns the largest highly composite number up to a bound.

    A highly composite number has more divisors than any smaller number.
    """
    divisors = np.zeros(bound + 1, np.int64)
    for n in range(1, bound + 1):
        divisors[n::n] += 1
    # argmax returns the first of equal counts, which is the highly composite number.
    return int(divisors.argmax())
