"""Beam search as TensorFlow graph code (paper section 6.1, Wu et al. 2016)."""

import tensorflow as tf

from t2t_repro.decoding.algorithms.algorithm import SentenceInputs
from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.decoding.constrained_search import ConstrainedSearch, TermInputs
from t2t_repro.decoding.constraints import Constraints
from t2t_repro.decoding.decode_loop import BeamSearchResult, Method, Rows, decode_batch
from t2t_repro.decoding.decoder import State, StepwiseDecoder
from t2t_repro.decoding.lexical_constraints import Terms


def beam_search(
    decoder: StepwiseDecoder,
    state: State,
    config: DecodingConfig,
    limits: tf.Tensor,
    *,
    constraints: Constraints | None = None,
    terms: Terms | None = None,
    width: int | None = None,
    compact_at: float | None = 0.25,
) -> BeamSearchResult:
    """Searches for the best translations of a batch of sentences.

    Args:
        decoder: Computes the logits of the next tokens.
        state: State of the decoder before the first step, for `config.beam_size`
            hypotheses per sentence.
        config: Settings: the algorithm, beam size, length penalty and n-best.
        limits: int32 (batch,), the maximum number of tokens, EOS included.
        constraints: Constraints on the hypotheses; None is the fastest.
        terms: Lexical constraints (see `ConstrainedSearch`); a result that is cut at
            its limit may lack some.
        width: Static length of the result, which also bounds the limits, for XLA;
            None: the number of steps taken.
        compact_at: Finished sentences leave the batch when they are this share of it;
            None keeps them, because XLA and some decoders need a constant size.

    Raises:
        ValueError: Constraints are combined with `tensor2tensor_rules`.
    """
    algorithm = config.search_algorithm(constraints)
    if width is not None:
        limits = tf.minimum(limits, width)
    limits = algorithm.limits(limits)
    rows = constraints.sentence_constraints(tf.shape(limits)[0]) if constraints else ()
    method: Method = algorithm
    inputs: Rows = SentenceInputs(limits, rows)
    if terms is not None:
        method = ConstrainedSearch(algorithm.constrained, terms)
        inputs = TermInputs(inputs, terms.ids)
    return decode_batch(method, decoder, state, inputs, limits, compact_at, width)
