"""Tests of packing against tensor2tensor's rows and manually packed rows."""

from __future__ import annotations

import json

import pytest
from golden_checks.packing import pack_pairs


@pytest.mark.parametrize(("spacing", "name"), [(0, "packed"), (2, "packed_spacing2")])
def test_rows_equal_those_of_tensor2tensor(shared_dir, spacing, name):
    path = shared_dir / "t2t/golden/packing_and_trees.json"
    golden = json.loads(path.read_text("utf-8"))
    length, queue = golden["packed_length"], golden["queue_size"]
    rows = pack_pairs(golden["examples"], length, spacing, queue)
    assert list(rows) == golden[name]
    assert len(golden[name]) == 5


def pairs(*lengths: int) -> list[dict[str, list[int]]]:
    """Returns pairs of the given lengths; pair n, from 0, repeats the id n + 5."""
    return [
        {side: [5 + number] * length for side in ("inputs", "targets")}
        for number, length in enumerate(lengths)
    ]


def packed(examples, length, open_rows=10) -> list[list[int]]:
    return [row["targets"] for row in pack_pairs(examples, length, 0, open_rows)]


def test_a_row_needs_room_on_both_sides():
    four = [
        {"inputs": [5, 1], "targets": [6, 7, 1]},
        {"inputs": [8, 1], "targets": [9, 1]},  # 3 + 2 targets do not fit.
        {"inputs": [8, 9, 1], "targets": [1]},  # 2 + 3 inputs do not fit.
        {"inputs": [3, 1], "targets": [1]},  # Fits into the first row.
    ]
    rows = list(pack_pairs(four, 4, 0, 10))
    assert [row["inputs"] for row in rows] == [[5, 1, 3, 1], [8, 1], [8, 9, 1]]
    assert [row["targets"] for row in rows] == [[6, 7, 1, 1], [9, 1], [1]]


def test_packs_into_the_oldest_open_row_with_room():
    five = pairs(3, 3, 1, 1, 2)
    assert packed(five, 4) == [[5, 5, 5, 7], [6, 6, 6, 8], [9, 9]]
    # With one open row, the first row is closed before the third pair.
    assert packed(five, 4, open_rows=1) == [[5, 5, 5], [6, 6, 6, 7], [8, 9, 9]]


def test_yields_rows_as_soon_as_they_are_closed():
    def endless():
        while True:
            yield from pairs(3)

    assert next(pack_pairs(endless(), 4, 0, 2))["targets"] == [5, 5, 5]


def test_a_long_pair_has_its_own_row():
    assert packed(pairs(1, 6, 1), 4) == [[5, 7], [6] * 6]


def test_no_pairs_yield_no_rows():
    assert list(pack_pairs([], 4, 0, 10)) == []
