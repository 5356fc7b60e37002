"""The guard accepts weights by two comparisons with the origin."""

import pytest

from t2t_repro.evaluation.metrics import paired_bootstrap
from t2t_repro.training.guard import accepts

LENGTHS = (16, 16, 14, 12, 8, 8, 8, 6)
FIRST, SECOND = ([f"{word} " * n for n in LENGTHS] for word in ("one", "two"))
# The second texts are correct in every other line, which are a little longer.
MIXED = [(SECOND if n % 2 == 0 else FIRST)[n] for n in range(len(LENGTHS))]


def compare(before, after, references):
    (difference,) = paired_bootstrap(before, after, [references], names=["BLEU"])
    return difference


@pytest.mark.parametrize(
    ("validation", "guard", "tolerance", "expected"),
    [
        # (before, after, references): 0 to 100, 100 to 0, 47.3 to 52.7, no change.
        ((FIRST, SECOND, SECOND), (FIRST, FIRST, FIRST), 0, True),
        ((FIRST, SECOND, SECOND), (FIRST, SECOND, FIRST), 100.1, True),
        ((FIRST, SECOND, SECOND), (FIRST, SECOND, FIRST), 99.9, False),
        ((FIRST, SECOND, FIRST), (FIRST, SECOND, SECOND), 100, False),
        ((FIRST, SECOND, MIXED), (FIRST, SECOND, SECOND), 100, False),
        ((FIRST, FIRST, FIRST), (FIRST, SECOND, SECOND), 100, False),
    ],
)
def test_accepts_only_a_significant_gain_with_a_tolerable_loss(
    validation, guard, tolerance, expected
):
    gain, loss = compare(*validation), compare(*guard)
    assert accepts(gain, loss, tolerance) is expected


def test_the_gain_of_half_of_the_lines_is_not_significant():
    gain = compare(FIRST, SECOND, MIXED)
    assert gain.first.score == pytest.approx(47.33, abs=0.01)
    assert gain.second.score == pytest.approx(52.67, abs=0.01)
    assert gain.second.p_value > 0.3
