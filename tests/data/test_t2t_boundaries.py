"""Bucket boundaries, against tensor2tensor's own table."""

from t2t_repro.data.t2t_boundaries import t2t_boundaries, t2t_widths


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
