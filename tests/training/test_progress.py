"""Tests of the decisions from validations: the best step and early stopping."""

import pytest

from t2t_repro.training.progress import Validation, find_best, stops_early

# The loss is lowest at step 30, and the score is highest at step 20.
CURVE = [
    Validation(10, 3.0, None),
    Validation(20, 2.0, 12.0),
    Validation(30, 1.5, 11.0),
    Validation(40, 1.7, 12.0),
    Validation(50, 1.6, 10.0),
]


@pytest.mark.parametrize(("metric", "step"), [("bleu", 20), ("chrf", 20), ("loss", 30)])
def test_the_first_of_the_best_validations_is_found(metric, step):
    assert find_best(CURVE, metric).step == step


def test_a_warm_up_has_a_best_loss_but_no_best_score():
    assert find_best(CURVE[:1], "bleu") is None
    assert find_best(CURVE[:1], "loss").step == 10
    assert stops_early(CURVE[:1], "bleu", 1) is None


@pytest.mark.parametrize(
    ("metric", "patience", "stopped_at"),
    # After step 20 there are three worse scores, and after step 30 two larger losses.
    [("bleu", 1, 30), ("bleu", 3, 50), ("bleu", 4, None), ("loss", 2, 50)],
)
def test_training_stops_after_validations_without_improvement(
    metric, patience, stopped_at
):
    stops = [
        CURVE[end].step
        for end in range(len(CURVE))
        if stops_early(CURVE[: end + 1], metric, patience)
    ]
    assert next(iter(stops), None) == stopped_at
    assert stops_early(CURVE, metric, 0) is None


def test_the_reason_names_the_best_step():
    assert stops_early(CURVE, "loss", 2) == (
        "stopping early: the best validation was at step 30, 2 validations ago "
        "(early_stopping=2, validation_metric=loss)"
    )


# The score grows, and the guard loses 1 point in every validation.
GUARDED = [Validation(n, 2.0, 10.0 + n, 30.0 - n / 10) for n in (0, 10, 20)]


@pytest.mark.parametrize(
    ("tolerance", "best"), [(None, 20), (2.0, 20), (1.0, 10), (0.5, 0)]
)
def test_validations_that_lose_more_than_the_tolerance_are_not_eligible(
    tolerance, best
):
    assert find_best(GUARDED, "bleu", tolerance).step == best
    # Validations that are not eligible are no improvement.
    stops = stops_early(GUARDED, "bleu", 2, tolerance) is not None
    assert stops == (best == 0)
