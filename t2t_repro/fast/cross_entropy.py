"""The smoothed cross entropy with its gradient written out.

The gradient is the softmax minus the distribution that is asked for.
"""

from collections.abc import Callable

import tensorflow as tf

from t2t_repro.fast.flat_attention import flatten_tokens
from t2t_repro.fast.xla_kernels import in_xla
from t2t_repro.layers.label_smoothing import entropy_of_smoothing

# From logits (rows, V), labels (rows,) and what a symbol is asked for at least and the
# label more: log(sum(exp(logits))), and the function from a gradient to the logits'.
_Form = Callable[[tf.Tensor, tf.Tensor, float, float], tuple[tf.Tensor, object]]


def smoothed_cross_entropy(
    logits: tf.Tensor, targets: tf.Tensor, label_smoothing: float
) -> tf.Tensor:
    """Replaces `label_smoothing.smoothed_cross_entropy` on a CPU.

    It keeps the softmax, which the loss has computed already; in XLA, which passes over
    memory once more to divide, what is divided for it.
    """
    form = _exponentials_kept if in_xla() else _softmax_kept
    return _cross_entropy(logits, targets, label_smoothing, form)


def by_comparison(
    logits: tf.Tensor, targets: tf.Tensor, label_smoothing: float
) -> tf.Tensor:
    """Replaces `label_smoothing.smoothed_cross_entropy` on a GPU.

    Each element of the gradient is a function of its logit: read once and written
    once, where a softmax that is kept and a scatter would go through memory again.
    """
    return _cross_entropy(logits, targets, label_smoothing, _softmax_again)


def _cross_entropy(
    logits: tf.Tensor, targets: tf.Tensor, label_smoothing: float, form: _Form
) -> tf.Tensor:
    vocab_size = logits.shape[-1]
    low = label_smoothing / (vocab_size - 1)
    weight = 1.0 - label_smoothing - low
    entropy = entropy_of_smoothing(label_smoothing, vocab_size)
    flat = tf.reshape(targets, [-1])

    @tf.custom_gradient
    def cross_entropy(z: tf.Tensor) -> tuple[tf.Tensor, object]:
        log_sum, gradient = form(z, flat, low, weight)
        chosen = tf.gather(z, flat, axis=1, batch_dims=1)
        loss = log_sum - weight * chosen - low * tf.reduce_sum(z, axis=1)
        return loss - entropy, gradient

    return tf.reshape(cross_entropy(flatten_tokens(logits)), tf.shape(targets))


def _softmax_kept(
    z: tf.Tensor, labels: tf.Tensor, low: float, weight: float
) -> tuple[tf.Tensor, object]:
    # oneDNN's softmax takes a third of the time of the cross-entropy kernels. Its
    # largest entry is at least 1 / V, so its logarithm is exact where that of the
    # label's own entry may be that of 0.
    softmax = tf.nn.softmax(z)
    log_sum = tf.reduce_max(z, axis=1) - tf.math.log(tf.reduce_max(softmax, axis=1))

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        dense = (softmax - low) * upstream[:, None]
        places = tf.stack([tf.range(tf.shape(labels)[0]), labels], axis=1)
        return tf.tensor_scatter_nd_sub(dense, places, weight * upstream)

    return log_sum, gradient


def _softmax_again(
    z: tf.Tensor, labels: tf.Tensor, low: float, weight: float
) -> tuple[tf.Tensor, object]:
    log_sum = tf.reduce_logsumexp(z, axis=1)

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        softmax = tf.exp(z - log_sum[:, None])
        return (softmax - _asked(z, labels, low, weight)) * upstream[:, None]

    return log_sum, gradient


def _exponentials_kept(
    z: tf.Tensor, labels: tf.Tensor, low: float, weight: float
) -> tuple[tf.Tensor, object]:
    largest = tf.reduce_max(z, axis=1)
    exponentials = tf.exp(z - largest[:, None])
    total = tf.reduce_sum(exponentials, axis=1)

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        softmax = exponentials / total[:, None]
        return (softmax - _asked(z, labels, low, weight)) * upstream[:, None]

    return largest + tf.math.log(total), gradient


def _asked(z: tf.Tensor, labels: tf.Tensor, low: float, weight: float) -> tf.Tensor:
    """Returns the distribution that is asked for, like z, by comparison."""
    is_label = tf.equal(labels[:, None], tf.range(z.shape[1]))
    return tf.where(is_label, low + weight, low)
