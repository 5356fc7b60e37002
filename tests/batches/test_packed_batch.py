"""A batch of parts comes apart as it was put together."""

import numpy as np
import pytest

from t2t_repro.batches.packed_batch import SIGNATURE, pack, parts_of, rectangle

RECTANGLES = (
    {"inputs": [[2, 3, 1], [4, 1, 0]], "targets": [[5, 1], [6, 1]]},
    {"inputs": [[1]], "targets": [[7, 8, 9, 1]]},
)


def test_parts_are_laid_flat_one_after_another():
    batch = pack(*RECTANGLES)
    assert batch["inputs"].tolist() == [2, 3, 1, 4, 1, 0, 1]
    assert batch["targets"].tolist() == [5, 1, 6, 1, 7, 8, 9, 1]
    assert batch["shapes"].tolist() == [[2, 3, 2], [1, 1, 4]]
    assert batch.keys() == SIGNATURE.keys()
    for name, array in batch.items():
        assert array.dtype == SIGNATURE[name].dtype.as_numpy_dtype
    assert batch["token_ratio"] == np.float32(14 / 15)


def test_each_part_is_found_again():
    batch = pack(*RECTANGLES)
    for number, wanted in enumerate(RECTANGLES):
        inputs, targets = rectangle(batch, number)
        assert inputs.numpy().tolist() == wanted["inputs"]
        assert targets.numpy().tolist() == wanted["targets"]


@pytest.mark.parametrize("parts", [1, 3, 7, 8])
@pytest.mark.parametrize("processes", [1, 2, 4, 8])
def test_processes_share_out_the_parts_as_the_replicas_take_them(parts, processes):
    """Of eight replicas; the loops of `TrainStep`, written out."""
    cuts = max(8 // parts, 1)
    taken = {r: {p // cuts for p in range(r, parts * cuts, 8)} for r in range(8)}
    each = 8 // processes
    for process in range(processes):
        own = range(process * each, (process + 1) * each)
        assert parts_of(own, 8, parts) == set().union(*(taken[r] for r in own))
