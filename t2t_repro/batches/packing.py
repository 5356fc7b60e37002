"""Several examples in one row, as tensor2tensor packs them when it makes its data.

A row keeps its examples apart by two more numbers for each position: the segment (1
for the first example, 2 for the second; 0 for spacing), which bounds attention, and
the position inside the segment, from 0, which the position signal takes.

Source: tensor2tensor data_generators/generator_utils.py:pack_examples.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

Ids = Sequence[int]


def pack_examples(
    examples: Iterable[Mapping[str, Ids]],
    packed_length: int,
    spacing: int = 0,
    queue_size: int = 10,
    has_inputs: bool = True,
    chop_long_sequences: bool = False,
) -> Iterator[dict[str, list[int]]]:
    """Puts each example into the oldest open row that has room for it.

    Up to `queue_size` rows are open; an example that fits into none opens a new one,
    for which the oldest is given out if there are too many. An example longer than
    a row has a row to itself, whole.

    Args:
        examples: each with ids of `targets` and, if `has_inputs`, of `inputs`, any
            EOS included.
        packed_length: ids that a row holds at most on each side, spacing included.
        spacing: zeros between one example and the next.
        queue_size: open rows, at least 1.
        has_inputs: whether examples are pairs. Without inputs, every row gets the
            single id 0 as its `inputs`, as in tensor2tensor.
        chop_long_sequences: whether targets longer than a row are cut: full rows are
            given out at once, and the rest is packed. Not for pairs.

    Yields:
        Rows, each a list of ids under `inputs` and `targets`, and lists as long of
        segments and positions under `targets_segmentation`, `targets_position` and,
        if `has_inputs`, `inputs_segmentation`, `inputs_position`. Rows are not padded.

    Raises:
        ValueError: pairs are to be chopped, which has no meaning: the pieces of one
            side do not translate those of the other.
    """
    if has_inputs and chop_long_sequences:
        raise ValueError("only examples without inputs can be chopped")
    sides = ("inputs", "targets") if has_inputs else ("targets",)
    open_rows: deque[_Row] = deque()
    for example in examples:
        pieces = {side: example[side] for side in sides}
        if chop_long_sequences:
            full, rest = _chop(example["targets"], packed_length)
            for targets in full:
                yield _Row({"targets": targets}, spacing).features()
            # T2T: a rest of nothing is packed too: it takes spacing, or opens a row.
            pieces = {"targets": rest}
        row = next((r for r in open_rows if r.has_room(pieces, packed_length)), None)
        if row:
            row.add(pieces)
            continue
        if len(open_rows) == queue_size:
            yield open_rows.popleft().features()
        open_rows.append(_Row(pieces, spacing))
    for row in open_rows:
        yield row.features()


class _Row:
    """The examples of one row.

    Args:
        pieces: the first example's ids by side.
        spacing: zeros before every further example.
    """

    def __init__(self, pieces: Mapping[str, Ids], spacing: int) -> None:
        self._spacing = spacing
        self._ids = {side: [*ids] for side, ids in pieces.items()}
        self._segmentation = {side: [1] * len(ids) for side, ids in pieces.items()}
        self._position = {side: [*range(len(ids))] for side, ids in pieces.items()}

    def has_room(self, pieces: Mapping[str, Ids], packed_length: int) -> bool:
        """Says whether one more example fits on every side."""
        return all(
            len(self._ids[side]) + self._spacing + len(ids) <= packed_length
            for side, ids in pieces.items()
        )

    def add(self, pieces: Mapping[str, Ids]) -> None:
        """Appends an example."""
        space = [0] * self._spacing
        for side, ids in pieces.items():
            segmentation = self._segmentation[side]
            # T2T: goes on from the last number, and so starts again at 1 after an
            # empty rest with spacing before it.
            segment = segmentation[-1] + 1 if segmentation else 1
            segmentation += [*space, *[segment] * len(ids)]
            self._ids[side] += [*space, *ids]
            self._position[side] += [*space, *range(len(ids))]

    def features(self) -> dict[str, list[int]]:
        """Returns the row under tensor2tensor's names."""
        found = {"inputs": [0]}
        for side, ids in self._ids.items():
            found[side] = ids
            found[f"{side}_segmentation"] = self._segmentation[side]
            found[f"{side}_position"] = self._position[side]
        return found


def _chop(ids: Ids, length: int) -> tuple[list[Ids], Ids]:
    """Cuts what is longer than a row into full rows, and a rest that may be empty."""
    if len(ids) <= length:
        return [], ids
    end = len(ids) - len(ids) % length
    return [ids[at : at + length] for at in range(0, end, length)], ids[end:]
