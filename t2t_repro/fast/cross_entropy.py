"""Label-smoothed cross entropy with an explicit gradient.

The gradient with respect to the logits is the softmax minus the smoothed target
distribution.
"""

from collections.abc import Callable

import tensorflow as tf

from t2t_repro.fast.flat_attention import flatten_tokens
from t2t_repro.fast.xla_kernels import is_xla_graph
from t2t_repro.layers.label_smoothing import entropy_of_smoothing
from t2t_repro.system.gradients import custom_gradient

# Arguments: logits z (rows, V), labels (rows,), the target probability `low` of every
# token except the label, and `weight`, the label's target probability minus `low`.
# Results: log(sum(exp(z))), (rows,), and a function that maps the upstream gradient to
# the gradient of z.
_Form = Callable[[tf.Tensor, tf.Tensor, float, float], tuple[tf.Tensor, object]]


def smoothed_cross_entropy(
    logits: tf.Tensor, targets: tf.Tensor, label_smoothing: float
) -> tf.Tensor:
    """Replaces `label_smoothing.smoothed_cross_entropy` on a CPU.

    It keeps the softmax computed for the loss and reuses it in the gradient. Under XLA
    it keeps the exponentials instead: normalizing them would be one more pass over
    memory.
    """
    form = _keep_exponentials if is_xla_graph() else _keep_softmax
    return _cross_entropy(logits, targets, label_smoothing, form)


def compare_with_labels(
    logits: tf.Tensor, targets: tf.Tensor, label_smoothing: float
) -> tf.Tensor:
    """Replaces `label_smoothing.smoothed_cross_entropy` on a GPU.

    It recomputes the softmax for the gradient and compares ids with the label, so each
    logit is read once and each element of the gradient is written once. A stored
    softmax and a scatter would pass over memory again.
    """
    return _cross_entropy(logits, targets, label_smoothing, _recompute_softmax)


def _cross_entropy(
    logits: tf.Tensor, targets: tf.Tensor, label_smoothing: float, form: _Form
) -> tf.Tensor:
    vocab_size = logits.shape[-1]
    low = label_smoothing / (vocab_size - 1)
    weight = 1.0 - label_smoothing - low
    entropy = entropy_of_smoothing(label_smoothing, vocab_size)
    flat = tf.reshape(targets, [-1])

    @custom_gradient
    def cross_entropy(z: tf.Tensor) -> tuple[tf.Tensor, object]:
        log_sum, gradient = form(z, flat, low, weight)
        of_label = tf.gather(z, flat, axis=1, batch_dims=1)
        loss = log_sum - weight * of_label - low * tf.reduce_sum(z, axis=1)
        return loss - entropy, gradient

    return tf.reshape(cross_entropy(flatten_tokens(logits)), tf.shape(targets))


def _keep_softmax(
    z: tf.Tensor, labels: tf.Tensor, low: float, weight: float
) -> tuple[tf.Tensor, object]:
    # oneDNN's softmax takes a third of the time of the cross-entropy kernels. The sum
    # follows from its largest entry, which is at least 1 / V; the label's entry could
    # underflow to 0.
    softmax = tf.nn.softmax(z)
    log_sum = tf.reduce_max(z, axis=1) - tf.math.log(tf.reduce_max(softmax, axis=1))

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        dense = (softmax - low) * upstream[:, None]
        # TensorFlow's scatter operations would copy all elements.
        places = tf.range(tf.shape(labels)[0]) * z.shape[1] + labels
        tf.debugging.assert_non_negative(
            places, "2^31 logits or more at once; set a smaller max_tokens_per_device"
        )
        flat, amounts = tf.reshape(dense, [-1, 1]), weight * upstream[:, None]
        flat = tf.raw_ops.InplaceSub(x=flat, i=places, v=amounts)
        return tf.reshape(flat, tf.shape(z))

    return log_sum, gradient


def _recompute_softmax(
    z: tf.Tensor, labels: tf.Tensor, low: float, weight: float
) -> tuple[tf.Tensor, object]:
    log_sum = tf.reduce_logsumexp(z, axis=1)

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        softmax = tf.exp(z - log_sum[:, None])
        expected = _target_distribution(z, labels, low, weight)
        return (softmax - expected) * upstream[:, None]

    return log_sum, gradient


def _keep_exponentials(
    z: tf.Tensor, labels: tf.Tensor, low: float, weight: float
) -> tuple[tf.Tensor, object]:
    largest = tf.reduce_max(z, axis=1)
    exponentials = tf.exp(z - largest[:, None])
    total = tf.reduce_sum(exponentials, axis=1)

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        softmax = exponentials / total[:, None]
        expected = _target_distribution(z, labels, low, weight)
        return (softmax - expected) * upstream[:, None]

    return largest + tf.math.log(total), gradient


def _target_distribution(
    z: tf.Tensor, labels: tf.Tensor, low: float, weight: float
) -> tf.Tensor:
    """Returns the smoothed target distribution, with the shape of z."""
    is_label = tf.equal(labels[:, None], tf.range(z.shape[1]))
    return tf.where(is_label, low + weight, low)
