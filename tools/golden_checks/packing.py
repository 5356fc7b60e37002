"""Packs several sentence pairs into a row, as tensor2tensor does.

Two more numbers per token identify its pair: the segment (1 for the first pair of the
row, 2 for the second, 0 for spacing) and the position in the segment, starting at 0.

Source: tensor2tensor data_generators/generator_utils.py:pack_examples.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

Ids = Sequence[int]
Pair = Mapping[str, Ids]


def pack_pairs(
    pairs: Iterable[Pair], packed_length: int, spacing: int, open_rows: int
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

    def has_room(row: list[Pair], pair: Pair) -> bool:
        lengths = (
            sum(len(each[side]) + spacing for each in row) + len(ids)
            for side, ids in pair.items()
        )
        return max(lengths) <= packed_length

    rows: deque[list[Pair]] = deque()
    for pair in pairs:
        row = next((row for row in rows if has_room(row, pair)), None)
        if row:
            row.append(pair)
            continue
        if len(rows) == open_rows:
            yield _features(rows.popleft(), spacing)
        rows.append([pair])
    for row in rows:
        yield _features(row, spacing)


def _features(row: Sequence[Pair], spacing: int) -> dict[str, list[int]]:
    """Returns the features of the pairs of a row."""
    features: dict[str, list[int]] = {}
    for side in row[0]:
        ids, segments, positions = list[int](), list[int](), list[int]()
        for segment, pair in enumerate(row, 1):
            space, length = [0] * (spacing if ids else 0), len(pair[side])
            ids += [*space, *pair[side]]
            segments += [*space, *[segment] * length]
            positions += [*space, *range(length)]
        features |= {side: ids, f"{side}_segmentation": segments}
        features[f"{side}_position"] = positions
    return features
