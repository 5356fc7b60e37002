"""Draws one token from each row of logits, and generates the random numbers."""

import tensorflow as tf

from t2t_repro.decoding.candidates import top_k
from t2t_repro.decoding.config import Sampling


def draw(logits: tf.Tensor, uniforms: tf.Tensor, settings: Sampling) -> tf.Tensor:
    """Draws from softmax(logits / temperature), or from its most probable tokens.

    Inverse transform sampling selects the token at which the cumulative probability
    exceeds the uniform number. Sums are float32, so probabilities below 1e-6 are only
    approximate. `top_k` draws from the k most probable tokens (Fan et al. 2018,
    arXiv:1805.04833, section 5.2); ties are broken by the lower id. `top_p` draws from
    the smallest set of most probable tokens whose total probability, after temperature
    and top_k, is at least p (Holtzman et al. 2020, arXiv:1904.09751, section 3.1);
    without top_k it sorts the vocabulary.

    Args:
        logits: float32 (rows, vocab). Tokens with -inf are not drawn, unless all have
            -inf.
        uniforms: float32 (rows,), from [0, 1).
        settings: Temperature, top_k and top_p.

    Returns:
        int32 (rows,).
    """
    if settings.top_k == 0 and settings.top_p == 1:
        return _pick(tf.nn.softmax(logits / settings.temperature), uniforms)
    vocab = logits.shape[1] or tf.shape(logits)[1]
    head, ids = top_k(logits, settings.top_k or vocab)
    probabilities = tf.nn.softmax(head / settings.temperature)
    if settings.top_p < 1:
        before = tf.cumsum(probabilities, axis=1, exclusive=True)
        probabilities = tf.where(before < settings.top_p, probabilities, 0.0)
    return tf.gather(ids, _pick(probabilities, uniforms), batch_dims=1)


def _pick(probabilities: tf.Tensor, uniforms: tf.Tensor) -> tf.Tensor:
    """Selects a column of each row: float32 (rows, k) and (rows,) -> int32 (rows,).

    Rows need not sum up to 1. A column with probability 0 is never selected, even if
    cumulative sums decrease, which may happen on a device that adds in parallel.
    """
    possible = probabilities > 0
    sums = tf.where(possible, tf.cumsum(probabilities, axis=1), 0.0)
    passed = uniforms[:, None] * tf.reduce_max(sums, axis=1, keepdims=True)
    # argmin of the column numbers gives the first such column; argmax of booleans does
    # not define which one it returns.
    columns = tf.range(tf.shape(sums)[1])
    order = tf.where(sums > passed, tf.cast(columns, tf.float32), float("inf"))
    return tf.argmin(order, axis=1, output_type=tf.int32)


def sentence_uniforms(
    seed: tf.Tensor, keys: tf.Tensor, limits: tf.Tensor, samples: int
) -> tf.Tensor:
    """Draws the random numbers of each sentence with its own generator.

    They depend only on the seed, the sentence's key and limit, and `samples` (Philox,
    the same on every device).

    Args:
        seed: int32 (2,).
        keys: int32 (batch,).
        limits: int32 (batch,), number of steps of each sentence.
        samples: Number of hypotheses per sentence.

    Returns:
        float32 (batch, samples, steps) from [0, 1), 0 after the sentence's limit.
    """
    seed, limits = tf.cast(seed, tf.int32), tf.maximum(limits, 0)
    steps = tf.reduce_max(tf.concat([limits, [0]], axis=0))

    def draw_sentence(sentence: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        key, limit = sentence
        numbers = tf.random.stateless_uniform(
            [samples, limit], tf.random.fold_in(seed, key), alg="philox"
        )
        return tf.pad(numbers, [[0, 0], [0, steps - limit]])

    # A dummy sentence is added and then removed: map_fn fails for an empty batch.
    keys, limits = tf.pad(keys, [[0, 1]]), tf.pad(limits, [[0, 1]])
    shape = tf.TensorSpec([samples, None], tf.float32)
    return tf.map_fn(draw_sentence, (keys, limits), fn_output_signature=shape)[:-1]
