"""Several sentence pairs in one row, as tensor2tensor packs them.

Two more numbers for each position keep the pairs of a row apart: the segment (1 for
the first pair, 2 for the second; 0 for spacing) and the position inside the segment,
from 0.

Source: tensor2tensor data_generators/generator_utils.py:pack_examples.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

Ids = Sequence[int]


def pack_pairs(
    pairs: Iterable[Mapping[str, Ids]], packed_length: int, spacing: int, open_rows: int
) -> Iterator[dict[str, list[int]]]:
    """Puts each pair into the oldest open row that has room for it on both sides.

    A pair that fits into none opens a new row; the oldest is given out when
    `open_rows` are open. A pair longer than a row has a row to itself, whole.
    `packed_length` is the most ids of a row on each side, with the `spacing` zeros
    between pairs. Ids include EOS.

    Yields:
        For each side SIDE, lists of one length: ids under `SIDE`, segments under
        `SIDE_segmentation`, positions under `SIDE_position`. Rows are not padded.
    """
    rows: deque[_Row] = deque()
    for pair in pairs:
        row = next((row for row in rows if row.has_room(pair, packed_length)), None)
        if row:
            row.add(pair)
            continue
        if len(rows) == open_rows:
            yield rows.popleft().features()
        rows.append(_Row(pair, spacing))
    for row in rows:
        yield row.features()


class _Row:
    """The pairs of one row."""

    def __init__(self, pair: Mapping[str, Ids], spacing: int) -> None:
        self._spacing = spacing
        self._ids = {side: [*ids] for side, ids in pair.items()}
        self._segmentation = {side: [1] * len(ids) for side, ids in pair.items()}
        self._position = {side: [*range(len(ids))] for side, ids in pair.items()}

    def has_room(self, pair: Mapping[str, Ids], packed_length: int) -> bool:
        return all(
            len(self._ids[side]) + self._spacing + len(ids) <= packed_length
            for side, ids in pair.items()
        )

    def add(self, pair: Mapping[str, Ids]) -> None:
        space = [0] * self._spacing
        for side, ids in pair.items():
            segment = self._segmentation[side][-1] + 1
            self._segmentation[side] += [*space, *[segment] * len(ids)]
            self._ids[side] += [*space, *ids]
            self._position[side] += [*space, *range(len(ids))]

    def features(self) -> dict[str, list[int]]:
        found = {}
        for side, ids in self._ids.items():
            found[side] = ids
            found[f"{side}_segmentation"] = self._segmentation[side]
            found[f"{side}_position"] = self._position[side]
        return found
