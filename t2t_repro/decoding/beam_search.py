"""Beam search as TensorFlow graph code (paper section 6.1, Wu et al. 2016)."""

import tensorflow as tf

from t2t_repro.decoding.algorithms.algorithm import SentenceInputs
from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.decoding.constrained_search import ConstrainedSearch, TermInputs
from t2t_repro.decoding.constraints import Constraints
from t2t_repro.decoding.decode_loop import Search
from t2t_repro.decoding.lexical_constraints import Terms, drop_long_terms


def beam_search(
    config: DecodingConfig,
    limits: tf.Tensor,
    constraints: Constraints | None = None,
    terms: Terms | None = None,
    width: int | None = None,
) -> Search:
    """Returns the beam search for a batch of sentences, for `decode_batch`.

    Constraints other than `never`, terms and `tensor2tensor_rules` exclude each other,
    and a width excludes `tensor2tensor_rules`.

    Args:
        config: Settings: the algorithm, beam size, length penalty and n-best.
        limits: int32 (batch,), the maximum number of tokens, EOS included.
        constraints: Constraints on the hypotheses; None (fastest): no constraints.
        terms: Lexical constraints (see `ConstrainedSearch`); the results lack the
            longest terms if the limit leaves no room for all of them.
        width: Upper bound on the limits; None: no bound.
    """
    assert not config.tensor2tensor_rules or (terms is None and width is None)
    assert terms is None or constraints is None or constraints.only_tokens
    assert terms is None or not config.min_length
    algorithm = config.search_algorithm(constraints)
    if width is not None:
        limits = tf.minimum(limits, width)
    limits = algorithm.limits(limits)
    rows = constraints.sentence_constraints(tf.shape(limits)[0]) if constraints else ()
    inputs = SentenceInputs(limits, rows)
    if terms is None:
        return Search(algorithm, inputs, limits)
    terms = terms._replace(ids=drop_long_terms(terms.ids, limits))
    method = ConstrainedSearch(algorithm.constrained, terms)
    return Search(method, TermInputs(inputs, terms.ids), limits)
