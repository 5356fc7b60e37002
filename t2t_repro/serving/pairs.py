"""How probable models find given translations, as graph code."""

import math
from collections.abc import Sequence

import tensorflow as tf

from t2t_repro.models.transformer import Transformer
from t2t_repro.tokenizers.tokenizer import PAD_ID


def log_probabilities(
    models: Sequence[Transformer], inputs: tf.Tensor, targets: tf.Tensor
) -> tf.Tensor:
    """Scores translations by teacher forcing.

    Args:
        models: one, or several over one vocabulary, whose probabilities are averaged
            as `EnsembleDecoder` does.
        inputs: int32 (batch, source), ending in EOS, 0-padded.
        targets: int32 (batch, target), 0-padded.

    Returns:
        float32 (batch,), nats: the sum over the symbols of each target.
    """
    found = []
    for model in models:
        logits = model({"inputs": inputs, "targets": targets})
        logits = tf.cast(logits, tf.float32)
        found.append(-tf.nn.sparse_softmax_cross_entropy_with_logits(targets, logits))
    log_probs = tf.reduce_logsumexp(tf.stack(found), axis=0) - math.log(len(models))
    is_symbol = tf.not_equal(targets, PAD_ID)
    return tf.reduce_sum(tf.where(is_symbol, log_probs, 0.0), axis=1)
