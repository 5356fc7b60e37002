"""tensor2tensor's bucket boundaries and the static widths they stand for."""

import numpy as np
import numpy.typing as npt


def t2t_boundaries(max_length: int, shortest: int = 8, step: float = 1.1) -> list[int]:
    """Returns tensor2tensor's bucket boundaries (utils/data_reader.py:43-62).

    Args:
        max_length: Length in tokens below which boundaries lie.
        shortest: First boundary in tokens.
        step: Ratio of consecutive boundaries; they grow by at least 1.
    """
    boundaries, boundary = [], shortest
    while boundary < max_length:
        boundaries.append(boundary)
        boundary = max(boundary + 1, int(boundary * step))
    return boundaries


def t2t_widths(max_length: int) -> npt.NDArray[np.int64]:
    """Returns the square widths of tensor2tensor's buckets, int64 (buckets, 2).

    A boundary b closes the bucket of the lengths below b; the last bucket ends at
    `max_length`.
    """
    # T2T: pads to the longest of the batch. The widths here are static, so a batch is
    # padded to the longest that its bucket can hold.
    longest = np.array([b - 1 for b in t2t_boundaries(max_length)] + [max_length])
    return np.stack([longest, longest], axis=1)
