"""The loss as a Keras user calls it."""

import keras
import numpy as np
import pytest

import t2t_repro
from tests.keras_api.pairs import PAIRS, TARGETS, by_hand, small


def test_the_loss_of_two_tokens_equals_arithmetic_by_hand():
    # Vocabulary of 3, label smoothing 0.1, equal logits.
    loss = t2t_repro.losses.LabelSmoothedCrossEntropy(0.1)
    result = loss(np.array([[1, 2, 0]]), np.zeros((1, 3, 3), "float32"))
    expected = np.log(3) + 0.9 * np.log(0.9) + 2 * 0.05 * np.log(0.05)
    assert float(result) == pytest.approx(expected, rel=1e-6)


def test_the_loss_without_smoothing_equals_keras_cross_entropy():
    logits = np.random.default_rng(0).normal(size=(16, 6, 20)).astype("float32")
    loss = t2t_repro.losses.LabelSmoothedCrossEntropy(0.0)
    theirs = keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, ignore_class=0, reduction=None
    )
    expected = np.sum(theirs(TARGETS, logits)) / (TARGETS != 0).sum()
    assert float(loss(TARGETS, logits)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("reduction", ["sum", "none", "mean_with_sample_weight"])
def test_supports_the_reductions_of_keras(reduction):
    logits = np.random.default_rng(0).normal(size=(16, 6, 20)).astype("float32")
    losses = by_hand(logits, TARGETS)
    expected = {
        "sum": losses.sum(),
        "none": losses,
        "mean_with_sample_weight": losses.sum() / (TARGETS != 0).sum(),
    }[reduction]
    loss = t2t_repro.losses.LabelSmoothedCrossEntropy(reduction=reduction)
    np.testing.assert_allclose(loss(TARGETS, logits), expected, rtol=1e-5, atol=1e-6)


def test_the_loss_can_be_recreated_from_its_config():
    loss = t2t_repro.losses.LabelSmoothedCrossEntropy(0.2, reduction="sum")
    config = loss.get_config()
    again = t2t_repro.losses.LabelSmoothedCrossEntropy.from_config(config)
    assert again.get_config() == config
    assert (again.label_smoothing, again.reduction) == (0.2, "sum")
    serialized = keras.saving.serialize_keras_object(loss)
    again = keras.saving.deserialize_keras_object(serialized)
    assert again.get_config() == config


def test_masked_accuracy_counts_neither_padding_nor_tokens_of_weight_zero():
    # The largest logits are of tokens 1, 2, 2, 0 and 2, 1, 0, 0.
    targets = np.array([[1, 2, 1, 0], [2, 1, 0, 0]])
    logits = np.eye(3, dtype="float32")[[[1, 2, 2, 0], [2, 1, 0, 0]]]
    metric = t2t_repro.losses.MaskedAccuracy()
    metric.update_state(targets, logits)
    assert float(metric.result()) == pytest.approx(4 / 5)
    metric.reset_state()
    metric.update_state(targets, logits, np.array([1.0, 0.0]))
    assert float(metric.result()) == pytest.approx(2 / 3)


def test_compiled_masked_accuracy_is_saved_with_the_model(tmp_path):
    model = small()
    loss = t2t_repro.losses.LabelSmoothedCrossEntropy()
    model.compile("adam", loss, metrics=[t2t_repro.losses.MaskedAccuracy()])
    model.fit(PAIRS, TARGETS, verbose=0)
    before = model.evaluate(PAIRS, TARGETS, return_dict=True, verbose=0)
    best = np.argmax(model(PAIRS), -1)
    expected = (best == TARGETS)[TARGETS != 0].mean()
    assert before["masked_accuracy"] == pytest.approx(expected, rel=1e-6)
    model.save(tmp_path / "m.keras")
    again = keras.models.load_model(tmp_path / "m.keras")
    after = again.evaluate(PAIRS, TARGETS, return_dict=True, verbose=0)
    assert after == pytest.approx(before, rel=1e-6)
