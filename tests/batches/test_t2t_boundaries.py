"""Bucket boundaries, against tensor2tensor's own table."""

from t2t_repro.batches.t2t_boundaries import t2t_batching, t2t_boundaries, t2t_widths


def test_boundaries_are_those_of_tensor2tensor():
    # Printed by tensor2tensor 1.15.7, utils/data_reader.py, for max_length 256.
    expected = (
        "8 9 10 11 12 13 14 15 16 17 18 19 20 22 24 26 28 30 33 36 39 42 46 50 55 60 "
        "66 72 79 86 94 103 113 124 136 149 163 179 196 215 236"
    )
    assert t2t_boundaries(256) == [int(b) for b in expected.split()]


def test_a_width_is_the_longest_length_below_its_boundary():
    # Boundaries below 12: 8, 9, 10, 11.
    assert t2t_widths(12).tolist() == [[7, 7], [8, 8], [9, 9], [10, 10], [12, 12]]


def test_batches_are_those_of_tensor2tensor():
    # Printed by the same function for batch_size 4096, on one device and on eight.
    expected = (
        "420 420 315 315 315 315 252 252 252 210 210 210 180 180 140 140 140 126 105 "
        "105 105 90 84 70 70 63 60 45 45 45 42 36 36 30 30 21 21 21 20 18 15 15"
    )
    sizes = [int(size) for size in expected.split()]
    one, eight = t2t_batching(4096, 256), t2t_batching(4096, 256, devices=8)
    assert one.batch_sizes.tolist() == sizes
    assert eight.batch_sizes.tolist() == [8 * size for size in sizes]
    assert one.boundaries.tolist() == t2t_boundaries(256)
    assert (one.max_length, one.shuffle_queue_size) == (256, 252)


def test_no_maximum_length_is_that_of_a_batch():
    assert t2t_batching(64, 0).max_length == 64
    assert t2t_batching(64, 0).boundaries.tolist() == t2t_boundaries(64)
