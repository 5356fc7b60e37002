"""Packed rows against tensor2tensor's, and against rows written by hand."""

from __future__ import annotations

import json

import pytest

from t2t_repro.batches.packing import pack_examples


@pytest.fixture(scope="module")
def golden(shared_dir):
    path = shared_dir / "t2t/golden/packing_and_trees.json"
    return json.loads(path.read_text("utf-8"))


@pytest.mark.parametrize(("spacing", "name"), [(0, "packed"), (2, "packed_spacing2")])
def test_rows_of_pairs_are_tensor2tensors(golden, spacing, name):
    rows = pack_examples(
        golden["examples"],
        golden["packed_length"],
        spacing=spacing,
        queue_size=golden["queue_size"],
    )
    assert list(rows) == golden[name]
    assert len(golden[name]) == 5


def targets(*lengths: int) -> list[dict[str, list[int]]]:
    """Returns examples without inputs; the n-th holds nothing but n, from 5."""
    return [{"targets": [5 + number] * length} for number, length in enumerate(lengths)]


def packed(examples, length, **settings) -> list[list[int]]:
    rows = pack_examples(examples, length, has_inputs=False, **settings)
    return [row["targets"] for row in rows]


def test_a_row_without_inputs_has_a_zero_in_their_place():
    (row,) = pack_examples(targets(3, 2), 7, spacing=2, has_inputs=False)
    assert row == {
        "inputs": [0],
        "targets": [5, 5, 5, 0, 0, 6, 6],
        "targets_segmentation": [1, 1, 1, 0, 0, 2, 2],
        "targets_position": [0, 1, 2, 0, 0, 0, 1],
    }


def test_both_sides_must_have_room():
    pairs = [
        {"inputs": [5, 1], "targets": [6, 7, 1]},
        {"inputs": [8, 1], "targets": [9, 1]},  # 3 + 2 targets
        {"inputs": [8, 9, 1], "targets": [1]},  # 2 + 3 inputs
        {"inputs": [3, 1], "targets": [1]},  # fits into the first row
    ]
    rows = list(pack_examples(pairs, 4))
    assert [row["inputs"] for row in rows] == [[5, 1, 3, 1], [8, 1], [8, 9, 1]]
    assert [row["targets"] for row in rows] == [[6, 7, 1, 1], [9, 1], [1]]


def test_an_example_goes_into_the_oldest_open_row_with_room():
    examples = targets(3, 3, 1, 1, 2)
    assert packed(examples, 4) == [[5, 5, 5, 7], [6, 6, 6, 8], [9, 9]]
    # With one open row at a time the first is gone when the third example comes.
    assert packed(examples, 4, queue_size=1) == [[5, 5, 5], [6, 6, 6, 7], [8, 9, 9]]


def test_rows_come_as_soon_as_they_are_pushed_out():
    def endless():
        while True:
            yield {"targets": [5, 5, 5]}

    rows = pack_examples(endless(), 4, queue_size=2, has_inputs=False)
    assert next(rows)["targets"] == [5, 5, 5]


def test_a_long_example_has_a_row_to_itself_whole():
    assert packed(targets(1, 6, 1), 4) == [[5, 7], [6] * 6]


def test_long_targets_are_chopped_if_asked_for():
    rows = packed(targets(2, 9, 4, 1), 4, chop_long_sequences=True)
    # Two full rows of the second example come first; its rest joins the first.
    assert rows == [[6] * 4, [6] * 4, [5, 5, 6, 8], [7] * 4]


def test_targets_that_fill_their_rows_leave_an_empty_rest_as_in_tensor2tensor():
    # What tensor2tensor 1.15.7's pack_examples gives for the same lengths.
    assert packed(targets(8), 4, chop_long_sequences=True) == [[5] * 4, [5] * 4, []]
    *_, row = pack_examples(
        targets(1, 16, 1), 8, 2, has_inputs=False, chop_long_sequences=True
    )
    assert row["targets"] == [5, 0, 0, 0, 0, 7]
    assert row["targets_segmentation"] == [1, 0, 0, 0, 0, 1]


def test_pairs_are_not_chopped():
    with pytest.raises(ValueError, match="without inputs"):
        next(pack_examples([], 4, chop_long_sequences=True))


def test_no_examples_make_no_rows():
    assert list(pack_examples([], 4)) == []
