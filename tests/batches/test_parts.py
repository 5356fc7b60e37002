"""A batch of parts comes apart as it was put together."""

import numpy as np

from t2t_repro.batches.parts import SIGNATURE, laid_flat, rectangle

RECTANGLES = (
    {"inputs": [[2, 3, 1], [4, 1, 0]], "targets": [[5, 1], [6, 1]]},
    {"inputs": [[1]], "targets": [[7, 8, 9, 1]]},
)


def test_parts_are_laid_flat_one_after_another():
    batch = laid_flat(*RECTANGLES)
    assert batch["inputs"].tolist() == [2, 3, 1, 4, 1, 0, 1]
    assert batch["targets"].tolist() == [5, 1, 6, 1, 7, 8, 9, 1]
    assert batch["shapes"].tolist() == [[2, 3, 2], [1, 1, 4]]
    assert batch.keys() == SIGNATURE.keys()
    assert {array.dtype for array in batch.values()} == {np.dtype(np.int32)}


def test_each_part_is_found_again():
    batch = laid_flat(*RECTANGLES)
    for number, wanted in enumerate(RECTANGLES):
        inputs, targets = rectangle(batch, number)
        assert inputs.numpy().tolist() == wanted["inputs"]
        assert targets.numpy().tolist() == wanted["targets"]
