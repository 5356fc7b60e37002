"""Cross entropy with label smoothing (paper section 5.4)."""

import math
from collections.abc import Callable

from keras import ops

from t2t_repro.layers.embedding import TokenEmbedding
from t2t_repro.layers.functional import Tensor
from t2t_repro.system.dispatch import dispatched


def entropy_of_smoothing(label_smoothing: float, vocab_size: int) -> float:
    """Returns the entropy of the smoothed distribution, in nats.

    Source: tensor2tensor common_layers.py:smoothing_cross_entropy, including its 1e-20
    in the logarithm.
    """
    true, other = 1.0 - label_smoothing, label_smoothing / (vocab_size - 1)
    return -true * math.log(true) - label_smoothing * math.log(other + 1e-20)


@dispatched
def smoothed_cross_entropy(
    logits: Tensor, targets: Tensor, label_smoothing: float
) -> Tensor:
    """Computes the cross entropy with label smoothing (section 5.4), in nats.

    The correct token has probability 1 - label_smoothing. The V - 1 other tokens,
    including PAD, share the rest equally. The entropy of this distribution is
    subtracted, so the lowest possible loss is 0.

    Args:
        logits: float32 (..., V).
        targets: int32 (...), token ids.
        label_smoothing: Probability of the other tokens, at least 0 and below 1.

    Returns:
        float32 (...).
    """
    vocab_size = logits.shape[-1]
    true, other = 1.0 - label_smoothing, label_smoothing / (vocab_size - 1)
    entropy = entropy_of_smoothing(label_smoothing, vocab_size)
    log_probs = ops.log_softmax(logits, axis=-1)
    of_target = ops.take_along_axis(log_probs, ops.expand_dims(targets, -1), axis=-1)
    of_all = ops.sum(log_probs, axis=-1)
    return -(true - other) * ops.squeeze(of_target, -1) - other * of_all - entropy


@dispatched
def loss_of_output(
    table: TokenEmbedding,
    x: Tensor,
    targets: Tensor,
    loss: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
) -> tuple[Tensor, Tensor]:
    """Computes the loss of the decoder's output.

    Args:
        table: Layer that computes the logits.
        x: float (batch, target, d_model).
        targets: int32 (batch, target), 0 is PAD.
        loss: Maps targets, int32 (...), and logits, float (..., V), to two sums over
            the positions, such as the loss and the number of tokens; PAD adds 0.

    Returns:
        The two sums, float32 () each. Only the first one has a gradient.
    """
    return loss(targets, table(x, reverse=True))
