"""Log probabilities of targets equal a softmax by hand."""

import numpy as np
import tensorflow as tf

from t2t_repro.models.log_probs import log_probs
from tests import tiny

INPUTS = tf.constant([[5, 6, 1], [7, 1, 0]])
TARGETS = tf.constant([[8, 9, 10, 1], [11, 1, 0, 0]])


def test_log_probs_equal_the_logarithm_of_the_softmax():
    model = tiny.random_model()
    logits = model({"inputs": INPUTS, "targets": TARGETS}).numpy().astype(np.float64)
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    expected = [
        [np.log(probabilities[row, index, token]) for index, token in enumerate(tokens)]
        for row, tokens in enumerate(TARGETS.numpy())
    ]
    result = log_probs(model, INPUTS, TARGETS).numpy()
    np.testing.assert_allclose(result[0], expected[0], atol=1e-5)
    np.testing.assert_allclose(result[1, :2], expected[1][:2], atol=1e-5)
    assert result[1, 2:].tolist() == [0, 0]
