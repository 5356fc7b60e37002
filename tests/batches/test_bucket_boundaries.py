"""Choice of static widths, against the best choice found by trying all."""

import itertools

import numpy as np
import pytest

from t2t_repro.batches.bucket_boundaries import choose_widths


def table(points, longest=9):
    """Counts int (longest + 1, longest + 1) from {(source, target): pairs}."""
    counts = np.zeros((longest + 1, longest + 1), np.int64)
    for point, pairs in points.items():
        counts[point] = pairs
    return counts


def cost(points, widths):
    """Padded positions when every pair takes the narrowest width that holds it."""
    return sum(
        pairs * min(s + t for s, t in widths if s >= point[0] and t >= point[1])
        for point, pairs in points.items()
    )


def test_one_shape_is_the_longest_of_each_side():
    counts = table({(2, 7): 3, (5, 1): 1})
    assert choose_widths(counts, 1).tolist() == [[5, 7]]


def test_enough_shapes_leave_no_padding():
    points = {(2, 7): 3, (5, 1): 1, (3, 3): 9}
    widths = choose_widths(table(points), 8)
    assert widths.tolist() == [[3, 3], [5, 1], [2, 7]]


def test_two_heaps_get_a_shape_each():
    points = {(2, 2): 50, (2, 3): 50, (8, 9): 50, (9, 9): 50}
    assert choose_widths(table(points), 2).tolist() == [[2, 3], [9, 9]]


@pytest.mark.parametrize("seed", range(6))
def test_three_shapes_cost_little_more_than_the_best_three(seed):
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
