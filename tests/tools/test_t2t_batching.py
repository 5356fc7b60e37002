"""Tests of tensor2tensor's batching against its recorded buckets."""

from golden_checks.t2t_batching import t2t_batching

# Output of tensor2tensor 1.15.7, utils/data_reader.py, for max_length 256 and
# batch_size 4096.
BOUNDARIES = (
    "8 9 10 11 12 13 14 15 16 17 18 19 20 22 24 26 28 30 33 36 39 42 46 50 55 60 "
    "66 72 79 86 94 103 113 124 136 149 163 179 196 215 236"
)
SIZES = (
    "420 420 315 315 315 315 252 252 252 210 210 210 180 180 140 140 140 126 105 "
    "105 105 90 84 70 70 63 60 45 45 45 42 36 36 30 30 21 21 21 20 18 15 15"
)


def test_batch_sizes_equal_those_of_tensor2tensor():
    sizes = [int(size) for size in SIZES.split()]
    one, eight = t2t_batching(4096, 256), t2t_batching(4096, 256, devices=8)
    assert one.boundaries.tolist() == [int(b) for b in BOUNDARIES.split()]
    assert one.batch_sizes.tolist() == sizes
    assert eight.batch_sizes.tolist() == [8 * size for size in sizes]
    assert (one.max_length, one.shuffle_queue_size) == (256, 252)


def test_maximum_length_defaults_to_the_batch_size():
    one, other = t2t_batching(64, 0), t2t_batching(64, 64)
    assert one.max_length == 64
    assert one.boundaries.tolist() == other.boundaries.tolist()
