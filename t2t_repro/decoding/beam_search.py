"""Beam search as TensorFlow graph code (paper section 6.1, Wu et al. 2016).

The algorithm is tensor2tensor's (utils/beam_search.py:beam_search): each step takes
the 2 * beam best continuations of a sentence; the best `beam` of those without EOS
stay alive, those with EOS compete for `beam` finished places by normalised score.

# T2T: five things differ, so that a translation depends on its sentence alone:
each sentence has its own limit; its search ends by its own stop rule, and nothing
changes after that; an unfinished hypothesis at the limit is scored as a finished one
(tensor2tensor returns its plain log probability); PAD is never produced; with a beam
of 1 only the single best continuation counts, which is greedy search.
`tensor2tensor_rules=True` restores the first four. Marian's and Transformers' searches
differ in a few places and are options of the same step; sources: Marian's
translator/beam_search.cpp, Transformers' generation/utils.py:_beam_search. OpenNMT-tf's
has a step of its own, see `opennmt_search`.
"""

import tensorflow as tf

from t2t_repro.decoding.beam_step import BeamMethod, Rules, SentenceInputs
from t2t_repro.decoding.constrained_search import TermMethod, TermsAsked
from t2t_repro.decoding.constraints import Constraints
from t2t_repro.decoding.decode_loop import BeamSearchResult, as_result, decode_batch
from t2t_repro.decoding.decoder import State, StepwiseDecoder
from t2t_repro.decoding.lexical_constraints import Terms
from t2t_repro.decoding.opennmt_search import OpenNMTMethod
from t2t_repro.decoding.stopping import OPENNMT, T2T


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
    compact_at: float | None = 0.25,
    width: int | None = None,
    tensor2tensor_rules: bool = False,
    algorithm: str = T2T,
    word_penalty: float = 0.0,
    terms: Terms | None = None,
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
        compact_at: finished sentences leave the batch when they are this share of it;
            None keeps them, for a decoder or a compiler (XLA) that needs one size.
        width: a static length for the result, which also bounds the limits, for XLA;
            None: the number of steps taken.
        tensor2tensor_rules: one limit (the largest) and one stop rule for the batch,
            plain log probabilities for unfinished hypotheses, PAD allowed.
        algorithm: "t2t", as above; "marian", where the best `beam` candidates are
            followed, each that ends leaves a place less in the beam, and what is cut at
            the limit is a result like any other; "transformers", where only the best
            `beam` candidates may end, EOS costs nothing at the limit, and the search
            ends when a full beam of finished hypotheses seems better than the rest; or
            "opennmt", see `opennmt_search`. Marian's and Transformers' have another
            score, see `Scoring`.
        word_penalty: of each symbol, EOS counted; for Marian's algorithm.
        terms: what the results must hold, see `term_search`; one that is cut at the
            limit may lack some.

    Raises:
        ValueError: beam_size, nbest or alpha is out of range, or constraints are asked
            of tensor2tensor's rules.
    """
    rules = Rules(
        beam_size,
        alpha,
        nbest,
        eos_id,
        pad_id,
        tensor2tensor_rules,
        constraints,
        algorithm,
        word_penalty,
    )
    limits = tf.broadcast_to(tf.cast(max_lengths, tf.int32), [batch_size])
    if width is None:
        columns = tf.reduce_max(tf.concat([limits, [0]], axis=0))
    else:
        columns = width
        limits = tf.minimum(limits, width)
    if tensor2tensor_rules:
        limits = tf.broadcast_to(columns, [batch_size])
    sentence_constraints = (
        constraints.sentence_constraints(batch_size, pad_id) if constraints else ()
    )
    plain, asked = (
        BeamMethod(decoder, rules),
        SentenceInputs(limits, sentence_constraints),
    )
    method: BeamMethod | TermMethod | OpenNMTMethod = plain
    wanted: SentenceInputs | TermsAsked = asked
    if algorithm == OPENNMT:
        method = OpenNMTMethod(decoder, rules)
    if terms is not None:
        method, wanted = TermMethod(plain, terms), TermsAsked(asked, terms.ids)
    progress = method.start(state, limits, columns, start_id)
    ids, scores, length = decode_batch(method, progress, wanted, compact_at)
    if width is None:
        ids = ids[:, :, :length]
    return as_result(ids, scores, pad_id)
