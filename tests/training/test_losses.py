"""Tests of the loss against tensor2tensor, and of its gradient against the formula."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.command_line.error_lines import error_line
from t2t_repro.fast import cross_entropy
from t2t_repro.layers import label_smoothing
from t2t_repro.layers.label_smoothing import (
    smoothed_cross_entropy,
)
from t2t_repro.training.losses import LabelSmoothedCrossEntropy
from tests import golden

SMOOTHINGS = ["0", "0.1", "0.2"]


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_losses_and_token_counts_equal_tensor2tensor(shared_dir, smoothing):
    arrays = golden.load(shared_dir / "t2t/golden/misc.npz")
    logits = tf.constant(arrays["smoothing/logits"])
    labels = tf.constant(arrays["smoothing/labels"], tf.int32)
    weights = arrays["smoothing/labels"] != 0
    losses = smoothed_cross_entropy(
        tf.reshape(logits, [-1, 31]), tf.reshape(labels, [-1]), float(smoothing)
    )
    losses = np.array(losses).reshape(labels.shape) * weights
    expected = arrays[f"smoothing/xent_{smoothing}"] * weights
    np.testing.assert_allclose(losses, expected, atol=2e-6)
    total, tokens = LabelSmoothedCrossEntropy(float(smoothing)).sum_and_count(
        labels, logits
    )
    assert float(total) == pytest.approx(float(arrays[f"smoothing/num_{smoothing}"]))
    assert float(tokens) == arrays[f"smoothing/den_{smoothing}"] == weights.sum()


@pytest.mark.parametrize(
    "form",
    [
        label_smoothing.smoothed_cross_entropy.reference,
        cross_entropy.smoothed_cross_entropy,
        cross_entropy.compare_with_labels,
    ],
)
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.3])
def test_value_and_gradient_equal_the_definition(smoothing, form):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(6, 9)).astype("float32") * 3
    targets = np.array([0, 8, 3, 3, 5, 0])
    upstream = rng.normal(size=6).astype("float32")
    single = tf.constant(logits)
    with tf.GradientTape() as tape:
        tape.watch(single)
        targets32 = tf.constant(targets, tf.int32)
        ours = form(single, targets32, smoothing)
        total = tf.reduce_sum(ours * upstream)
    gradient = tape.gradient(total, single)

    soft = np.full((6, 9), smoothing / 8)
    soft[np.arange(6), targets] = 1 - smoothing
    safe = np.where(soft > 0, soft, 1)
    entropy = -(soft * np.log(safe)).sum(axis=1)
    wide = tf.constant(logits, tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(wide)
        expected = -tf.reduce_sum(soft * tf.nn.log_softmax(wide), axis=1) - entropy
        total = tf.reduce_sum(expected * upstream)
    np.testing.assert_allclose(ours, expected, atol=1e-5)
    np.testing.assert_allclose(gradient, tape.gradient(total, wide), atol=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("without_padding", [False, True])
def test_the_form_of_marian_equals_the_definition(smoothing, without_padding):
    """Every token, the correct one too, gets an equal share of the smoothing."""
    logits = np.random.default_rng(0).normal(size=(1, 4, 9)).astype("float32") * 3
    targets = np.array([[8, 3, 1, 3]])
    loss = LabelSmoothedCrossEntropy(
        smoothing, form="marian", without_padding=without_padding
    )
    rows = np.exp(logits[0, :, without_padding:].astype("float64"))
    of_all = -np.log(rows / rows.sum(axis=-1, keepdims=True))
    of_target = of_all[np.arange(4), targets[0] - without_padding]
    expected = (1 - smoothing) * of_target + smoothing * of_all.mean(axis=-1)
    np.testing.assert_allclose(loss.call(targets, logits)[0], expected, atol=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_gradient_changes_nothing_else_in_place(smoothing):
    """With these arguments, TensorFlow may simplify the factors of the softmax."""
    logits, targets = tf.random.stateless_normal([3, 500], [1, 2]), [4, 0, 4]

    def loss_and_gradient(form):
        @tf.function(autograph=False)
        def compute():
            with tf.GradientTape() as tape:
                tape.watch(logits)
                total = tf.reduce_sum(form(logits, tf.constant(targets), smoothing))
            return total, tape.gradient(total, logits)

        return compute()

    ours = loss_and_gradient(cross_entropy.smoothed_cross_entropy)
    expected = loss_and_gradient(label_smoothing.smoothed_cross_entropy.reference)
    np.testing.assert_allclose(ours[0], expected[0], rtol=1e-6)
    np.testing.assert_allclose(ours[1], expected[1], atol=1e-6)


def test_too_many_logits_name_the_hyper_parameter():
    """A label of -1 has a negative index, as an index of 2^31 has in 32 bits."""

    @tf.function(autograph=False)
    def compute():
        logits, labels = tf.zeros([1, 3]), tf.constant([-1])
        _, gradient = cross_entropy._keep_softmax(logits, labels, 0.1, 0.8)
        return gradient(tf.ones([1]))

    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        compute()
    expected = "2^31 logits or more at once; set a smaller max_tokens_per_device"
    assert error_line(caught.value) == expected


def test_the_minimum_loss_is_zero():
    soft = np.full((1, 5), 0.1 / 4)
    soft[0, 2] = 0.9
    loss = smoothed_cross_entropy(
        tf.constant(np.log(soft), tf.float32), tf.constant([2]), 0.1
    )
    assert float(loss[0]) == pytest.approx(0, abs=1e-6)


def test_padding_adds_neither_loss_nor_gradient():
    logits = tf.constant(np.random.default_rng(0).normal(size=(2, 3, 7)), tf.float32)
    targets = tf.constant([[4, 1, 0], [1, 0, 0]])
    loss = LabelSmoothedCrossEntropy(0.1)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        total, tokens = loss.sum_and_count(targets, logits)
    gradient = np.array(tape.gradient(total, logits))
    assert float(tokens) == 3
    assert np.all(gradient[np.array(targets) == 0] == 0)
    assert np.all(gradient[np.array(targets) != 0] != 0)
    unpadded = [loss.sum_and_count(targets[:1, :2], logits[:1, :2])]
    unpadded.append(loss.sum_and_count(targets[1:, :1], logits[1:, :1]))
    assert float(total) == pytest.approx(sum(float(t) for t, _ in unpadded), rel=1e-6)


def test_sums_half_precision_losses_in_float32():
    logits = tf.constant(np.random.default_rng(0).normal(size=(1, 2, 9)), tf.bfloat16)
    total, tokens = LabelSmoothedCrossEntropy(0.1).sum_and_count(
        tf.constant([[1, 2]]), logits
    )
    assert total.dtype == tokens.dtype == tf.float32
