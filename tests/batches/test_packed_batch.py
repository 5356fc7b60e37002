"""Packing and unpacking of batches of several micro-batches."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.batches.packed_batch import (
    SIGNATURE,
    pack,
    rectangle,
    select_microbatches,
)

RECTANGLES = (
    {"inputs": [[2, 3, 1], [4, 1, 0]], "targets": [[5, 1], [6, 1]]},
    {"inputs": [[1]], "targets": [[7, 8, 9, 1]]},
)


def test_packed_batch_has_the_signature_of_the_training_step():
    batch = pack(*RECTANGLES, token_ratio=14 / 15)
    assert batch.keys() == SIGNATURE.keys()
    for name, array in batch.items():
        value = tf.convert_to_tensor(array)
        assert SIGNATURE[name].is_compatible_with(value), name
    assert batch["token_ratio"] == np.float32(14 / 15)


def test_each_micro_batch_is_unpacked_unchanged():
    batch = pack(*RECTANGLES, token_ratio=14 / 15)
    for number, expected in enumerate(RECTANGLES):
        inputs, targets = rectangle(batch, number)
        assert inputs.numpy().tolist() == expected["inputs"]
        assert targets.numpy().tolist() == expected["targets"]


def test_micro_batch_of_another_process_is_empty_and_cannot_be_read():
    batch = pack(None, RECTANGLES[0], token_ratio=0.5)
    assert batch["inputs"][0] == batch["targets"][0] == b""
    assert rectangle(batch, 1)[0].numpy().tolist() == RECTANGLES[0]["inputs"]
    assert batch["token_ratio"] == 0.5
    with pytest.raises(tf.errors.InvalidArgumentError):
        rectangle(batch, 0)


@pytest.mark.parametrize("microbatches", [1, 3, 7, 8])
@pytest.mark.parametrize("processes", [1, 2, 4, 8])
def test_process_gets_the_micro_batches_of_its_replicas(microbatches, processes):
    """Compares with the loops of `TrainStep` for eight replicas."""
    cuts = max(8 // microbatches, 1)
    shards = {
        r: {p // cuts for p in range(r, microbatches * cuts, 8)} for r in range(8)
    }
    per_process = 8 // processes
    for process in range(processes):
        own = range(process * per_process, (process + 1) * per_process)
        assert select_microbatches(own, 8, microbatches) == set().union(
            *(shards[r] for r in own)
        )
        whole = select_microbatches(own, 8, microbatches, whole=True)
        assert whole == set(own) & set(range(microbatches))
