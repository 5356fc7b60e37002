"""Tests of the lines before the first step."""

from t2t_repro.training.announcements import describe_epochs


def test_the_number_of_epochs_is_steps_over_batches_and_a_large_one_is_warned_about():
    assert list(describe_epochs(30, 12)) == ["30 steps: 2.5 epochs"]
    assert list(describe_epochs(4000, 20)) == ["4,000 steps: 200 epochs"]
    line, warning = describe_epochs(20_000, 15)
    assert line == "20,000 steps: 1,333 epochs"
    assert warning.startswith("warning: more than 200 epochs")
    assert " --train_steps, for example to 750 (50 epochs)" in warning
