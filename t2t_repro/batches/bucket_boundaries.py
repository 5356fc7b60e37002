"""Choice of a few static widths (source, target) for a corpus, with little padding.

Pairs are points (source length, target length). A set of widths is found in two
steps: the rectangle of all points is split again and again where that saves most
padding, into more rectangles than wanted; then the two rectangles whose union costs
least are merged until as many as wanted are left. The second step repairs what the
first, which never looks ahead, cut badly.
"""

import heapq
from dataclasses import dataclass
from itertools import count

import numpy as np
import numpy.typing as npt

from t2t_repro.data.encoded_pairs import IntArray

# Rectangles to split into before merging: eight for each that is wanted, few enough
# to compare all with all.
_CANDIDATES_PER_SHAPE, _MOST_CANDIDATES = 8, 512


def choose_widths(counts: IntArray, max_shapes: int) -> IntArray:
    """Chooses at most `max_shapes` widths, so that padding to them costs little.

    `counts` is int (longest + 1, longest + 1), pairs at each source and target length.
    Returns int64 (shapes, 2), narrowest (by sum) first; every pair fits into one at
    least.
    """
    wanted = max(max_shapes, min(_CANDIDATES_PER_SHAPE * max_shapes, _MOST_CANDIDATES))
    cells = _split(counts, wanted)
    sizes = np.array([cell.counts.sum() for cell in cells])
    widths = np.array([cell.widths for cell in cells])
    chosen = _merge(sizes, widths, max_shapes)
    return chosen[np.lexsort((chosen[:, 0], chosen.sum(axis=1)))]


@dataclass(frozen=True)
class _Cell:
    """A rectangle of lengths, trimmed: pairs lie on each of its four edges."""

    counts: IntArray  # int (source lengths, target lengths)
    source: int  # shortest source length
    target: int  # shortest target length

    @property
    def widths(self) -> tuple[int, int]:
        """Longest source and longest target length."""
        rows, columns = self.counts.shape
        return self.source + rows - 1, self.target + columns - 1

    @classmethod
    def trimmed(cls, counts: IntArray, source: int, target: int) -> "_Cell":
        """Makes a cell of the smallest rectangle that holds all pairs of `counts`."""
        rows = np.flatnonzero(counts.any(axis=1))
        columns = np.flatnonzero(counts.any(axis=0))
        return cls(
            counts[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1],
            source + int(rows[0]),
            target + int(columns[0]),
        )

    def cut(self, axis: int, place: int) -> tuple["_Cell", "_Cell"]:
        """Cuts along source (0) or target (1) before local position `place`."""
        low, high = np.split(self.counts, [place], axis=axis)
        source, target = (place, 0) if axis == 0 else (0, place)
        return (
            _Cell.trimmed(low, self.source, self.target),
            _Cell.trimmed(high, self.source + source, self.target + target),
        )

    def best_cut(self) -> tuple[int, int, int]:
        """Returns the padded positions saved, axis and place of the best cut.

        No cut saves 0 positions or less: a cell of one point returns 0.
        """
        best = (0, 0, 0)
        for axis in (0, 1):
            counts = self.counts if axis == 0 else self.counts.T
            length, across = counts.shape
            if length == 1:
                continue
            below = np.cumsum(counts.sum(axis=1))[:-1]
            above = counts.sum() - below
            # Edge of the pairs at each position: along the cut and across it.
            across_edge = np.where(counts > 0, np.arange(1, across + 1), 0).max(axis=1)
            along_edge = np.where(across_edge > 0, np.arange(1, length + 1), 0)
            low_along = length - np.maximum.accumulate(along_edge)[:-1]
            low_across = across - np.maximum.accumulate(across_edge)[:-1]
            high_across = across - np.maximum.accumulate(across_edge[::-1])[::-1][1:]
            saved = below * (low_along + low_across) + above * high_across
            place = int(saved.argmax())
            best = max(best, (int(saved[place]), axis, place + 1))
        return best


def _split(counts: IntArray, wanted: int) -> list[_Cell]:
    """Splits the rectangle of all pairs into `wanted` cells, or into single points."""
    number = count()  # breaks ties in the heap, in the order of creation

    def entry(cell: _Cell) -> tuple[int, int, int, int, _Cell]:
        saved, axis, place = cell.best_cut()
        return -saved, next(number), axis, place, cell

    heap = [entry(_Cell.trimmed(counts, 0, 0))]
    while len(heap) < wanted and heap[0][0] < 0:
        _, _, axis, place, cell = heapq.heappop(heap)
        for part in cell.cut(axis, place):
            heapq.heappush(heap, entry(part))
    return [cell for *_, cell in heap]


def _merge(sizes: IntArray, widths: IntArray, wanted: int) -> IntArray:
    """Merges cells, cheapest union first, until `wanted` widths are left.

    `sizes` is int (cells,), pairs in each cell; `widths` int (cells, 2).
    """
    sizes, widths = sizes.astype(np.int64), widths.astype(np.int64)
    alive = np.ones(len(sizes), bool)

    def prices(cell: int) -> npt.NDArray[np.float64]:
        """Positions that the union of `cell` with each other cell adds."""
        union = np.maximum(widths, widths[cell]).sum(axis=1)
        apart = sizes * widths.sum(axis=1)
        added = (sizes + sizes[cell]) * union - apart - apart[cell]
        added = np.where(alive, added, np.inf)
        added[cell] = np.inf
        return added

    table = np.stack([prices(cell) for cell in range(len(sizes))])
    for _ in range(len(sizes) - wanted):
        kept, gone = np.unravel_index(table.argmin(), table.shape)
        widths[kept] = np.maximum(widths[kept], widths[gone])
        sizes[kept] += sizes[gone]
        alive[gone] = False
        table[gone] = table[:, gone] = np.inf
        table[kept] = table[:, kept] = prices(int(kept))
    return widths[alive]
