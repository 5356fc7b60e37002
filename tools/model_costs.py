"""What a model costs by arithmetic: its parameters, and operations in products."""

from __future__ import annotations

from t2t_repro.hparams import HParams

TARGET_SPACES = 32
"""Rows of tensor2tensor's table of target languages."""

TRAINING_PASSES = 3
"""A gradient costs two products for each of the forward pass."""


def parameters(hparams: HParams, vocab_size: int) -> int:
    """Counts the parameters of a model over one shared vocabulary.

    `vocab_size` is V before it is rounded up to `vocab_divisor`.
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
    """Counts the floating-point operations that training on one sentence pair takes.

    Multiplications and additions (two operations) in matrix products, forward and
    backward; what is done element by element is left out (a few percent). With dense
    rows of positions the mean length gives the mean count but for the attention's
    products, which grow with the square. `source` and `target` are tokens, EOS
    included.
    """
    d, d_ff = hparams.d_model, hparams.d_ff
    keys = hparams.num_heads * hparams.key_size
    values = hparams.num_heads * hparams.value_size
    feed_forward = 2 * d * d_ff
    projections = _attention(hparams)
    # Products of queries with keys, and of weights with values: for each pair.
    pair = keys + values
    encoder = hparams.num_layers * (
        source * (projections + feed_forward) + source * source * pair
    )
    queries_and_output = d * (keys + values)
    decoder = hparams.decoder_layers * (
        target * (projections + feed_forward + queries_and_output)
        + source * queries_and_output  # The encoder's output as keys and values.
        + (target * target + target * source) * pair
    )
    logits = target * d * vocab_size
    return 2.0 * TRAINING_PASSES * (encoder + decoder + logits)


def _attention(hparams: HParams) -> int:
    """Counts the weights of one attention's four projections."""
    heads, d = hparams.num_heads, hparams.d_model
    return 2 * d * heads * (hparams.key_size + hparams.value_size)
