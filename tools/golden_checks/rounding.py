"""Largest differences that the rounding of float32 numbers explains."""

from __future__ import annotations

import math
from typing import NamedTuple

from t2t_repro.hparams import HParams

EPSILON = 2.0**-23
"""Distance of the float32 numbers from 1 to 2."""


def tolerance(magnitude: float, additions: int) -> float:
    """Returns EPSILON * magnitude * sqrt(additions).

    An addition changes its result by at most EPSILON / 2 of the result. These errors
    have both signs, so n of them add up to about sqrt(n) of them instead of n (Higham
    and Mary 2019, "A New Approach to Probabilistic Rounding Error Analysis"). Both
    programs make this error, in different orders of the additions.

    Args:
        magnitude: Largest absolute value of the partial sums.
        additions: Number of additions, one after the other; 0 for equality. Every
            other rounded operation counts as one.
    """
    return EPSILON * magnitude * math.sqrt(additions)


class Additions(NamedTuple):
    """Additions on the longest way from the ids of a model to its results.

    Attributes:
        encoder: For the encoder's output.
        decoder: For the decoder's output, and all attention weights.
        logits: For the logits.
        losses: For the loss of a token.
        gradients: For the gradients of the mean loss.
    """

    encoder: int
    decoder: int
    logits: int
    losses: int
    gradients: int


POSITION = 4
"""Roundings of a position signal: exponent, rate, angle and sine."""


def model_additions(
    hparams: HParams, shape: tuple[int, int], vocab_size: int
) -> Additions:
    """Counts the additions of a model in matmuls, softmax and normalization.

    Args:
        hparams: Hyper-parameters of the model.
        shape: Number of rows of a batch, and positions of a row.
        vocab_size: Number of target subwords.
    """
    rows, length = shape
    d_model = hparams.d_model
    # Queries; their matmul with keys; softmax; weighted values; output projection.
    heads = hparams.num_heads * hparams.value_size
    attention = d_model + hparams.key_size + 2 * length + heads
    feed_forward = d_model + hparams.d_ff
    norm = 2 * d_model  # Mean and variance.
    encoder_layer = attention + feed_forward + 2 * norm
    decoder_layer = 2 * attention + feed_forward + 3 * norm
    encoder = POSITION + hparams.num_layers * encoder_layer + norm
    decoder = encoder + hparams.decoder_layers * decoder_layer + norm
    logits = decoder + d_model
    losses = logits + vocab_size
    # Backpropagation has the same sums as the forward pass. The gradient of a weight
    # is a sum over all tokens.
    gradients = 2 * losses + rows * length
    return Additions(encoder, decoder, logits, losses, gradients)
