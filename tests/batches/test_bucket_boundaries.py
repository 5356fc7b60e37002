"""Choice of bucket boundaries, compared with exhaustive search."""

import itertools

import numpy as np
import pytest

from t2t_repro.batches.bucket_boundaries import choose_widths


def table(points, longest=9):
    """Converts {(source, target): pairs} to an array indexed by both lengths.

    Returns the number of pairs, int (longest + 1, longest + 1).
    """
    counts = np.zeros((longest + 1, longest + 1), np.int64)
    for point, pairs in points.items():
        counts[point] = pairs
    return counts


def cost(points, widths):
    """Returns the padded positions if every pair uses the narrowest width that fits."""
    return sum(
        pairs * min(s + t for s, t in widths if s >= point[0] and t >= point[1])
        for point, pairs in points.items()
    )


def test_single_shape_has_the_maximum_of_each_side():
    counts = table({(2, 7): 3, (5, 1): 1})
    assert choose_widths(counts, 1).tolist() == [[5, 7]]


def test_one_shape_per_length_leaves_no_padding():
    points = {(2, 7): 3, (5, 1): 1, (3, 3): 9}
    widths = choose_widths(table(points), 8)
    assert widths.tolist() == [[3, 3], [5, 1], [2, 7]]


def test_two_clusters_get_one_shape_each():
    points = {(2, 2): 50, (2, 3): 50, (8, 9): 50, (9, 9): 50}
    assert choose_widths(table(points), 2).tolist() == [[2, 3], [9, 9]]


@pytest.mark.parametrize("seed", range(6))
def test_three_shapes_are_close_to_the_optimum(seed):
    rng = np.random.default_rng(seed)
    points = {
        (int(s), int(t)): int(n)
        for (s, t), n in zip(
            rng.integers(1, 9, (14, 2)), rng.integers(1, 30, 14), strict=True
        )
    }
    sides = itertools.product(range(1, 9), range(1, 9))
    corner = tuple(np.array(list(points)).max(axis=0).tolist())
    best = min(cost(points, [*two, corner]) for two in itertools.combinations(sides, 2))
    chosen = choose_widths(table(points), 3).tolist()
    assert len(chosen) == 3
    assert cost(points, chosen) <= 1.08 * best
