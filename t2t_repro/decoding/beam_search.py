"""Beam search as TensorFlow graph code (paper section 6.1, Wu et al. 2016).

The algorithm is tensor2tensor's (utils/beam_search.py:beam_search): each step takes
the 2 * beam best continuations of a sentence; the best `beam` of those without EOS
stay alive, those with EOS compete for `beam` finished places by normalised score.

# T2T: five things differ, so that a translation depends on its sentence alone:
each sentence has its own limit; its search ends by its own stop rule, and nothing
changes after that; an unfinished hypothesis at the limit is scored as a finished one
(tensor2tensor returns its plain log probability); PAD is never produced; with a beam
of 1 only the single best continuation counts, which is greedy search.
`tensor2tensor_rules=True` restores the first four.
"""

import tensorflow as tf

from t2t_repro.decoding.batch import BeamSearchResult, as_result, decode_batch
from t2t_repro.decoding.beam_step import Asked, BeamMethod, Rules
from t2t_repro.decoding.constraints import Constraints
from t2t_repro.decoding.decoder import State, StepwiseDecoder


def beam_search(
    decoder: StepwiseDecoder,
    state: State,
    *,
    batch_size: int | tf.Tensor,
    beam_size: int,
    alpha: float,
    max_lengths: tf.Tensor,
    nbest: int = 1,
    constraints: Constraints | None = None,
    start_id: int = 0,
    eos_id: int = 1,
    pad_id: int = 0,
    leave_at: float | None = 0.25,
    width: int | None = None,
    tensor2tensor_rules: bool = False,
) -> BeamSearchResult:
    """Searches the best translations of a batch of sentences.

    Args:
        decoder: scores the next symbols.
        state: the decoder's, before the first step.
        batch_size: sentences.
        beam_size: hypotheses per sentence; 1 is greedy search.
        alpha: exponent of the length penalty, at least 0.
        max_lengths: int32 (batch,), the most symbols of each sentence, EOS counted.
        nbest: the search goes on until this many hypotheses are final.
        constraints: what else is asked of the hypotheses; None is the fastest.
        start_id: the symbol before the first.
        eos_id: the symbol that ends a translation.
        pad_id: pads the result; never produced.
        leave_at: finished sentences leave the batch when they are this share of it;
            None keeps them, for a decoder or a compiler (XLA) that needs one size.
        width: a static length for the result, which also bounds the limits, for XLA;
            None: the number of steps taken.
        tensor2tensor_rules: one limit (the largest) and one stop rule for the batch,
            plain log probabilities for unfinished hypotheses, PAD allowed.

    Raises:
        ValueError: beam_size, nbest or alpha is out of range, or constraints are asked
            of tensor2tensor's rules.
    """
    rules = Rules(
        beam_size, alpha, nbest, eos_id, pad_id, tensor2tensor_rules, constraints
    )
    limits = tf.broadcast_to(tf.cast(max_lengths, tf.int32), [batch_size])
    if width is None:
        columns = tf.reduce_max(tf.concat([limits, [0]], axis=0))
    else:
        columns = width
        limits = tf.minimum(limits, width)
    if tensor2tensor_rules:
        limits = tf.broadcast_to(columns, [batch_size])
    wishes = constraints.wishes(batch_size, pad_id) if constraints else ()
    method = BeamMethod(decoder, rules)
    progress = method.start(state, limits, columns, start_id)
    ids, scores, length = decode_batch(
        method, progress, Asked(limits, wishes), leave_at
    )
    if width is None:
        ids = ids[:, :, :length]
    return as_result(ids, scores, pad_id)
