"""Packs several sentence pairs into a row, as tensor2tensor does.

Two more numbers per token identify its pair: the segment (1 for the first pair of the
row, 2 for the second, 0 for spacing) and the position in the segment, starting at 0.

Source: tensor2tensor data_generators/generator_utils.py:pack_examples.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

Ids = Sequence[int]


def pack_pairs(
    pairs: Iterable[Mapping[str, Ids]], packed_length: int, spacing: int, open_rows: int
) -> Iterator[dict[str, list[int]]]:
    """Packs each pair into the oldest open row with enough room on both sides.

    A pair that fits into no open row opens a new one. A pair longer than
    `packed_length` gets its own row and is not truncated.

    Args:
        pairs: Sentence pairs; each side is a list of ids with EOS.
        packed_length: Maximum number of ids per row and side, including spacing.
        spacing: Number of zeros between pairs.
        open_rows: Maximum number of open rows; one more closes the oldest.

    Yields:
        Rows without padding. For each side SIDE, a row has three lists of equal
        length: ids (`SIDE`), segments (`SIDE_segmentation`) and positions
        (`SIDE_position`).
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
    """Row of packed pairs."""

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
        features = {}
        for side, ids in self._ids.items():
            features[side] = ids
            features[f"{side}_segmentation"] = self._segmentation[side]
            features[f"{side}_position"] = self._position[side]
        return features
