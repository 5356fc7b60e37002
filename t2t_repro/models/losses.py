"""The training loss: label-smoothed cross entropy, as a sum and a token count."""

import math

import tensorflow as tf


def soft_target_entropy(label_smoothing: float, vocab_size: int) -> float:
    """Returns the entropy of the smoothed target, in nats.

    Subtracting it makes the best possible loss 0 (tensor2tensor
    common_layers.py:smoothing_cross_entropy, with its 1e-20 inside the logarithm).
    """
    confidence = 1.0 - label_smoothing
    low = label_smoothing / (vocab_size - 1)
    spread = (vocab_size - 1) * low * math.log(low + 1e-20)
    return -(confidence * math.log(confidence) + spread)


def smoothed_cross_entropy(
    logits: tf.Tensor, targets: tf.Tensor, label_smoothing: float
) -> tf.Tensor:
    """Computes the cross entropy with label smoothing (paper section 5.4).

    The true label gets 1 - label_smoothing, each of the V - 1 others, PAD among
    them, an equal part of the rest; the soft target's entropy is subtracted.
    The gradient is written out: softmax minus the soft target, from the softmax that
    the loss has computed already.

    Args:
        logits: float (rows, V).
        targets: int32 (rows,).
        label_smoothing: between 0 and 1.

    Returns:
        float32 (rows,), nats.
    """
    vocab_size = logits.shape[-1]
    low = label_smoothing / (vocab_size - 1)
    weight = 1.0 - label_smoothing - low
    entropy = soft_target_entropy(label_smoothing, vocab_size)

    @tf.custom_gradient
    def cross_entropy(z: tf.Tensor) -> tuple[tf.Tensor, object]:
        # oneDNN's softmax takes a third of the time of the cross-entropy kernels. Its
        # largest entry is at least 1 / V, so its logarithm is exact where that of the
        # label's own entry may be that of 0.
        softmax = tf.nn.softmax(z)
        log_sum = tf.reduce_max(z, axis=1) - tf.math.log(tf.reduce_max(softmax, axis=1))
        chosen = tf.gather(z, targets, axis=1, batch_dims=1)
        loss = log_sum - weight * chosen - low * tf.reduce_sum(z, axis=1)

        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            dense = (softmax - low) * upstream[:, None]
            places = tf.stack([tf.range(tf.shape(targets)[0]), targets], axis=1)
            return tf.tensor_scatter_nd_sub(dense, places, weight * upstream)

        return loss - entropy, gradient

    return cross_entropy(tf.cast(logits, tf.float32))


def loss_sum(
    logits: tf.Tensor, targets: tf.Tensor, label_smoothing: float
) -> tuple[tf.Tensor, tf.Tensor]:
    """Sums the loss over the positions that hold a symbol.

    The division by the token count is left to the caller, who alone knows the
    global count (tensor2tensor t2t_model.py:_loss_single with weights_nonzero).

    Args:
        logits: float (batch, target, V).
        targets: int32 (batch, target), 0 is PAD.
        label_smoothing: between 0 and 1.

    Returns:
        The sum in nats and the number of symbols, EOS included, both float32 ().
    """
    flat = tf.reshape(targets, [-1])
    losses = smoothed_cross_entropy(
        tf.reshape(logits, [-1, logits.shape[-1]]), flat, label_smoothing
    )
    weights = tf.cast(tf.not_equal(flat, 0), tf.float32)
    return tf.reduce_sum(losses * weights), tf.reduce_sum(weights)
