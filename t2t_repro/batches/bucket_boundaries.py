"""Choice of bucket boundaries (source and target widths) that cause little padding.

Pairs are points (source length, target length). The algorithm has two phases. First it
splits the rectangle of all points repeatedly, each time at the cut that saves the most
padding, into more rectangles than needed. Then it merges the two rectangles whose
union adds the least padding, until the number of shapes is reached. Merging corrects
bad cuts of the first phase, which is greedy.
"""

import heapq
from dataclasses import dataclass
from itertools import count

import numpy as np
import numpy.typing as npt

from t2t_repro.data.encoded_pairs import IntArray

# Rectangles before merging: eight per shape, bounded because merging compares all pairs
# of rectangles.
_CANDIDATES_PER_SHAPE, _MOST_CANDIDATES = 8, 512


def choose_widths(counts: IntArray, max_shapes: int) -> IntArray:
    """Chooses at most `max_shapes` (source, target) widths with little padding.

    `counts` is int (longest + 1, longest + 1), number of pairs by source and target
    length. Returns int64 (shapes, 2), ascending by the sum of both widths; every pair
    fits into at least one of them.
    """
    candidates = min(_CANDIDATES_PER_SHAPE * max_shapes, _MOST_CANDIDATES)
    cells = _split(counts, max(max_shapes, candidates))
    sizes = np.array([cell.counts.sum() for cell in cells])
    widths = np.array([cell.widths for cell in cells])
    chosen = _merge(sizes, widths, max_shapes)
    return chosen[np.lexsort((chosen[:, 0], chosen.sum(axis=1)))]


@dataclass(frozen=True)
class _Cell:
    """Bounding rectangle of the lengths of some pairs."""

    counts: IntArray  # int (source lengths, target lengths), number of pairs.
    shortest: IntArray  # int64 (2,), shortest source and target length.

    @property
    def widths(self) -> IntArray:
        """Longest source and target length, int64 (2,)."""
        return self.shortest + self.counts.shape - 1

    @classmethod
    def from_counts(cls, counts: IntArray, shortest: IntArray) -> "_Cell":
        """Creates the cell of the smallest rectangle around the pairs of `counts`."""
        rows, columns = (np.flatnonzero(counts.any(axis=axis)) for axis in (1, 0))
        inner = counts[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        return cls(inner, shortest + np.array([rows[0], columns[0]]))

    def cut(self, axis: int, place: int) -> tuple["_Cell", "_Cell"]:
        """Cuts the source axis (0) or the target axis (1) before index `place`."""
        low, high = np.split(self.counts, [place], axis=axis)
        offset = place * np.eye(2, dtype=np.int64)[axis]
        return (
            _Cell.from_counts(low, self.shortest),
            _Cell.from_counts(high, self.shortest + offset),
        )

    def best_cut(self) -> tuple[int, int, int]:
        """Returns the best cut: number of saved padded positions, axis and index.

        The number is 0 if the cell has only one point; otherwise it is positive.
        """
        best = (0, 0, 0)
        for axis in (0, 1):
            counts = self.counts if axis == 0 else self.counts.T
            length, across = counts.shape
            if length == 1:
                continue
            below = np.cumsum(counts.sum(axis=1))[:-1]
            above = counts.sum() - below
            # At each index along the axis: the longest length of a pair across the
            # axis (0 without a pair), and the index + 1 if there is a pair.
            across_edge = np.where(counts > 0, np.arange(1, across + 1), 0).max(axis=1)
            along_edge = np.where(across_edge > 0, np.arange(1, length + 1), 0)
            low_along = length - np.maximum.accumulate(along_edge)[:-1]
            low_across = across - np.maximum.accumulate(across_edge)[:-1]
            high_across = across - np.maximum.accumulate(across_edge[::-1])[::-1][1:]
            saved = below * (low_along + low_across) + above * high_across
            place = int(saved.argmax())
            best = max(best, (int(saved[place]), axis, place + 1))
        return best


def _split(counts: IntArray, max_cells: int) -> list[_Cell]:
    """Splits the rectangle of all pairs into at most `max_cells` cells.

    It stops early only if every cell is a single point.
    """
    number = count()  # The heap breaks ties by the order of creation.

    def entry(cell: _Cell) -> tuple[int, int, int, int, _Cell]:
        saved, axis, place = cell.best_cut()
        return -saved, next(number), axis, place, cell

    heap = [entry(_Cell.from_counts(counts, np.zeros(2, np.int64)))]
    while len(heap) < max_cells and heap[0][0] < 0:
        _, _, axis, place, cell = heapq.heappop(heap)
        for part in cell.cut(axis, place):
            heapq.heappush(heap, entry(part))
    return [cell for *_, cell in heap]


def _merge(sizes: IntArray, widths: IntArray, max_shapes: int) -> IntArray:
    """Merges cells, cheapest union first, until `max_shapes` widths remain.

    `sizes` is int (cells,), number of pairs in each; `widths` is int (cells, 2).
    """
    sizes, widths = sizes.astype(np.int64), widths.astype(np.int64)
    alive = np.ones(len(sizes), bool)

    def prices(cell: int) -> npt.NDArray[np.float64]:
        """Returns the positions of padding added by merging `cell` with each other."""
        union = np.maximum(widths, widths[cell]).sum(axis=1)
        apart = sizes * widths.sum(axis=1)
        added = (sizes + sizes[cell]) * union - apart - apart[cell]
        added = np.where(alive, added, np.inf)
        added[cell] = np.inf
        return added

    table = np.stack([prices(cell) for cell in range(len(sizes))])
    for _ in range(len(sizes) - max_shapes):
        union, merged = np.unravel_index(table.argmin(), table.shape)
        widths[union] = np.maximum(widths[union], widths[merged])
        sizes[union] += sizes[merged]
        alive[merged] = False
        table[merged] = table[:, merged] = np.inf
        table[union] = table[:, union] = prices(int(union))
    return widths[alive]
