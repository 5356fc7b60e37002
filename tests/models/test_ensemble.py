"""An ensemble averages probabilities and is used like one decoder."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.models.cached_decoder import CachedDecoder
from t2t_repro.models.ensemble import EnsembleDecoder
from tests import tiny
from tests.decoding.results import beam_search

VOCAB_SIZE = 23
INPUTS = np.array([[5, 6, 7, 8, 1], [9, 4, 1, 0, 0]], np.int32)
SIZES = {"d_model": 12, "d_ff": 20, "num_heads": 3}
BEAM = 3


@pytest.fixture(scope="module")
def models():
    """Two models that have only the vocabulary in common."""
    return (
        tiny.random_model(VOCAB_SIZE, **SIZES),
        tiny.random_model(
            VOCAB_SIZE, **SIZES, seed=2, num_layers=2, norm="pre", d_k=5, d_v=2
        ),
    )


def ensemble(*models, beam_size=BEAM):
    return EnsembleDecoder([CachedDecoder(model, beam_size) for model in models])


def search(decoder):
    result = tf.function(
        lambda inputs: beam_search(
            decoder,
            decoder.start(inputs),
            DecodingConfig(BEAM, alpha=0.6, nbest=BEAM),
            limits=tf.constant([9, 6]),
        ),
        autograph=False,
    )(tf.constant(INPUTS))
    return result.ids.numpy(), result.scores.numpy()


def teacher_forced(models, targets):
    """Computes the logarithm of the mean of the softmax outputs, in float64."""
    mean = 0.0
    for model in models:
        logits = np.asarray(model({"inputs": INPUTS, "targets": targets}), np.float64)
        powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
        mean = mean + powers / powers.sum(axis=-1, keepdims=True) / len(models)
    return np.log(mean)


def test_probabilities_are_the_mean_of_the_models(models):
    decoder = ensemble(*models, beam_size=1)
    targets = np.random.default_rng(3).integers(2, VOCAB_SIZE, (2, 6), np.int32)
    expected = teacher_forced(models, targets)
    state = decoder.start(tf.constant(INPUTS))
    last = np.zeros((2, 1), np.int32)
    for index in range(6):
        log_probs, state = decoder.step(tf.constant(last), tf.constant(index), state)
        np.testing.assert_allclose(log_probs[:, 0], expected[:, index], atol=1e-5)
        last = targets[:, index : index + 1]
    # The models differ, so their mean is not trivial.
    one, other = (teacher_forced([model], targets) for model in models)
    assert np.abs(one - other).max() > 1


@pytest.fixture(scope="module")
def searched(models):
    """Returns the ids and scores of a search with both models."""
    return search(ensemble(*models))


@pytest.mark.medium
def test_scores_of_beam_search_equal_the_ensembles_log_probabilities(models, searched):
    ids, scores = searched
    for hypothesis in range(BEAM):
        targets = ids[:, hypothesis]
        chosen = np.take_along_axis(
            teacher_forced(models, targets), targets[:, :, None], axis=2
        )[:, :, 0]
        lengths = (targets != 0).sum(axis=1)
        sums = np.where(targets != 0, chosen, 0).sum(axis=1)
        penalty = ((5 + lengths) / 6) ** 0.6
        filled = lengths > 0  # Missing hypotheses are only padding.
        difference = np.abs(scores[:, hypothesis] * penalty - sums)
        assert difference[filled].max(initial=0) < 1e-4
        assert hypothesis > 0 or filled.all()


@pytest.mark.medium
def test_an_ensemble_of_equal_models_equals_the_model(models, searched):
    ids, scores = search(CachedDecoder(models[0], BEAM))
    same_ids, same_scores = search(ensemble(models[0], models[0]))
    np.testing.assert_array_equal(same_ids, ids)
    np.testing.assert_allclose(same_scores, scores, atol=1e-5)
    other_ids, _ = searched
    assert other_ids.shape != ids.shape or (other_ids != ids).any()


def test_improbable_tokens_have_finite_log_probabilities(models):
    """A logit 200 below the best underflows as a float32 probability."""

    class Fixed(CachedDecoder):
        def step(self, ids, index, state):
            logits, state = super().step(ids, index, state)
            return tf.one_hot(tf.fill(tf.shape(ids), 2), logits.shape[-1], 200.0), state

    decoder = EnsembleDecoder([Fixed(model, 1) for model in models])
    state = decoder.start(tf.constant(INPUTS))
    log_probs, _ = decoder.step(tf.zeros([2, 1], tf.int32), tf.constant(0), state)
    np.testing.assert_allclose(log_probs[0, 0, :4], [-200, -200, 0, -200], atol=1e-4)


def test_rejects_incompatible_decoders(models):
    with pytest.raises(ValueError, match="equal beam sizes"):
        EnsembleDecoder([CachedDecoder(models[0], 1), CachedDecoder(models[1], 2)])
    with pytest.raises(ValueError, match="numbers of softmax rows"):
        ensemble(models[0], tiny.random_model(24, **SIZES))
    with pytest.raises(ValueError, match="an ensemble needs"):
        EnsembleDecoder([])
