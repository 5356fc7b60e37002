"""Tests of the ids of lexical constraints."""

import tensorflow as tf

from t2t_repro.tokenizers.term_encoding import encode_terms
from tests.tokenizers.test_replacement import word_pieces

# Ids of "a_" and "b_", after <pad>_, <EOS>_, 14 escape characters and 3 letters.
A, B = 19, 20


def test_ids_are_padded_and_repeated_terms_become_padding():
    target = word_pieces("a", "b", " ", "a_", "b_")
    terms = tf.constant([["a", "a b", "a", "a b"], ["b", "", "a", ""]])
    ids = encode_terms(target, terms, longest=5)
    assert ids.numpy().tolist() == [
        [[A, 0], [A, B], [0, 0], [0, 0]],
        [[B, 0], [0, 0], [A, 0], [0, 0]],
    ]
    twice = encode_terms(target, terms, longest=5, once=False)
    assert twice[0].numpy().tolist() == [[A, 0], [A, B], [A, 0], [A, B]]
    cut = encode_terms(target, terms, longest=1)
    assert cut.numpy().tolist() == [[[A], [0], [0], [0]], [[B], [0], [A], [0]]]


def test_without_terms_there_is_one_of_padding():
    terms = tf.constant([], tf.string, [2, 0])
    ids = encode_terms(word_pieces("a", "a_"), terms, 5)
    assert ids.numpy().tolist() == [[[0]], [[0]]]
