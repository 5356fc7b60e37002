"""The probability of each symbol of a target, checked against the softmax by hand."""

import numpy as np
import tensorflow as tf

from t2t_repro.models.log_probs import log_probs
from tests import tiny

INPUTS = tf.constant([[5, 6, 1], [7, 1, 0]])
TARGETS = tf.constant([[8, 9, 10, 1], [11, 1, 0, 0]])


def test_each_symbol_has_the_logarithm_of_its_share_of_the_softmax():
    model = tiny.random_model()
    logits = model({"inputs": INPUTS, "targets": TARGETS}).numpy().astype(np.float64)
    shares = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    expected = [
        [np.log(shares[row, place, symbol]) for place, symbol in enumerate(symbols)]
        for row, symbols in enumerate(TARGETS.numpy())
    ]
    found = log_probs(model, INPUTS, TARGETS).numpy()
    np.testing.assert_allclose(found[0], expected[0], atol=1e-5)
    np.testing.assert_allclose(found[1, :2], expected[1][:2], atol=1e-5)
    assert found[1, 2:].tolist() == [0, 0]
