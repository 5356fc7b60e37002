"""Number of parameters and training operations of a model, by arithmetic."""

from __future__ import annotations

from t2t_repro.hparams import HParams

TARGET_SPACES = 32
"""Rows of tensor2tensor's target-space embedding."""

TRAINING_PASSES = 3
"""Matmuls per forward matmul: one forward and two backward."""


def parameters(hparams: HParams, vocab_size: int) -> int:
    """Returns the number of parameters of a model with a shared vocabulary.

    `vocab_size` is not yet rounded up to a multiple of `vocab_divisor`.
    """
    d, d_ff = hparams.d_model, hparams.d_ff
    rows = -(-vocab_size // hparams.vocab_divisor) * hparams.vocab_divisor
    tables = rows if hparams.share_embeddings else 3 * rows
    if hparams.target_space_embedding:
        tables += TARGET_SPACES
    if hparams.position == "learned":
        tables += 2 * hparams.max_position
    relative = 0
    if hparams.max_relative_position:
        distances = 2 * hparams.max_relative_position + 1
        relative = distances * (hparams.key_size + hparams.value_size)
    feed_forward = 2 * d * d_ff + d_ff + d
    norm = 2 * d
    encoder_layer = _attention(hparams) + relative + feed_forward + 2 * norm
    decoder_layer = 2 * _attention(hparams) + relative + feed_forward + 3 * norm
    final_norms = 2 * norm if hparams.norm == "pre" else 0
    return (
        tables * d
        + hparams.num_layers * encoder_layer
        + hparams.decoder_layers * decoder_layer
        + final_norms
    )


def training_flops(
    hparams: HParams, vocab_size: int, source: float, target: float
) -> float:
    """Returns the floating-point operations of training on one sentence pair.

    Counts multiplications and additions in forward and backward matmuls, without
    element-wise operations (a few percent). For mean lengths, the result is the mean
    number of operations, except in attention, whose cost is quadratic in the length.

    Args:
        hparams: Hyper-parameters of the model.
        vocab_size: Number of subwords.
        source: Number of source tokens, including EOS.
        target: Number of target tokens, including EOS.
    """
    d, d_ff = hparams.d_model, hparams.d_ff
    keys = hparams.num_heads * hparams.key_size
    values = hparams.num_heads * hparams.value_size
    feed_forward = 2 * d * d_ff
    projections = _attention(hparams)
    # Per pair of positions: matmuls of queries and keys, and of weights and values.
    pair = keys + values
    encoder = hparams.num_layers * (
        source * (projections + feed_forward) + source * source * pair
    )
    queries_and_output = d * (keys + values)
    decoder = hparams.decoder_layers * (
        target * (projections + feed_forward + queries_and_output)
        + source * queries_and_output  # Keys and values of the encoder output.
        + (target * target + target * source) * pair
    )
    logits = target * d * vocab_size
    return 2.0 * TRAINING_PASSES * (encoder + decoder + logits)


def _attention(hparams: HParams) -> int:
    """Returns the number of weights in the four projections of an attention layer."""
    heads, d = hparams.num_heads, hparams.d_model
    return 2 * d * heads * (hparams.key_size + hparams.value_size)
