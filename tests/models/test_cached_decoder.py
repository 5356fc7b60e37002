"""Cached decoding equals the model over whole targets."""

from functools import cache

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.fast.cached_decoder import KVCacheDecoder
from t2t_repro.models.cached_decoder import CachedDecoder
from tests import golden, tiny
from tests.decoding.results import beam_search

CASES = ["v1_postnorm", "v3_prenorm", "v1_dk", "v1_posemb", "v3_unshared"]
CASES += ["v3_enc3dec1_1shard", "v3_notargetspace_vocabdiv", "relative"]
VOCAB_SIZE = 23
# Two sentences; the second is padded.
INPUTS = np.array([[5, 6, 7, 8, 1], [9, 4, 1, 0, 0]], np.int32)
SIZES = {
    "d_model": 12,
    "d_ff": 20,
    "num_heads": 3,
    "num_layers": 2,
}
KINDS = {
    "post": {"norm": "post", "d_k": 5, "d_v": 2},
    "pre": {"norm": "pre", "d_k": 5, "d_v": 2},
    "relative": {"norm": "pre", "position": "none", "max_relative_position": 2},
    "restricted": {"norm": "post", "self_attention_radius": 2},
    "restricted and relative": {
        "norm": "post",
        "max_relative_position": 3,
        "self_attention_radius": 1,
    },
}


@pytest.fixture(params=[CachedDecoder, KVCacheDecoder], scope="module")
def decoder_class(request):
    """The reference decoder and the optimized one."""
    return request.param


@pytest.fixture(params=KINDS, scope="module")
def model(request):
    """A model with random weights, including norms and biases."""
    return tiny.random_model(VOCAB_SIZE, 0.2, **SIZES, **KINDS[request.param])


@cache
def golden_case(path):
    """Returns tensor2tensor's arrays of a case and the model with its weights."""
    arrays = golden.load(path)
    return arrays, golden.model_of(arrays, golden.hparams_of(arrays))


def run_steps(decoder, state, hypotheses):
    """Feeds tokens, int (batch, beam, steps); returns all logits and the state."""
    logits = []
    last = np.zeros(hypotheses.shape[:2], np.int32)
    for index in range(hypotheses.shape[2]):
        step_logits, state = decoder.step(tf.constant(last), tf.constant(index), state)
        logits.append(step_logits.numpy())
        last = hypotheses[:, :, index].astype(np.int32)
    return np.stack(logits, axis=2), state


def whole_targets(model, targets):
    """Returns the logits of all targets, int (batch, beam, length), by the model."""
    batch, beam, length = targets.shape
    inputs = np.repeat(INPUTS, beam, axis=0)
    rows = targets.reshape(batch * beam, length).astype(np.int32)
    logits = model({"inputs": inputs, "targets": rows})
    return logits.numpy().reshape(batch, beam, length, -1)


def test_logits_of_every_step_equal_those_of_whole_targets(model, decoder_class):
    targets = np.random.default_rng(2).integers(2, VOCAB_SIZE, (2, 3, 6))
    decoder = decoder_class(model, 3)
    stepwise, _ = run_steps(decoder, decoder.start(tf.constant(INPUTS)), targets)
    np.testing.assert_allclose(stepwise, whole_targets(model, targets), atol=1e-5)


# The greedy search is tested with the plain post-norm and pre-norm models.
@pytest.mark.parametrize(
    "case", ["v1_posemb", "v3_unshared", "v3_enc3dec1_1shard", "relative"]
)
def test_logits_of_every_step_equal_those_of_tensor2tensor(
    shared_dir, case, decoder_class
):
    arrays, model = golden_case(shared_dir / "t2t/golden" / f"{case}.npz")
    decoder = decoder_class(model, 1)
    targets = arrays["targets"][:, None]
    state = decoder.start(tf.constant(arrays["inputs"]))
    stepwise, _ = run_steps(decoder, state, targets)
    np.testing.assert_allclose(stepwise[:, 0], arrays["logits"], atol=1e-4)


@pytest.mark.medium
def test_reordered_hypotheses_keep_their_caches(model, decoder_class):
    """Every step chooses random parents, as a beam search does.

    There are more steps than initial slots in the optimized cache.
    """
    generator = np.random.default_rng(3)
    beam_size, steps = 3, 18 if decoder_class is KVCacheDecoder else 6
    decoder = decoder_class(model, beam_size)
    state = decoder.start(tf.constant(INPUTS))
    hypotheses = np.zeros((2, beam_size, 0), np.int32)
    last = np.zeros((2, beam_size), np.int32)
    stepwise, targets = [], []
    for index in range(steps):
        logits, state = decoder.step(tf.constant(last), tf.constant(index), state)
        stepwise.append(logits)
        # Later tokens do not change the logits.
        targets.append(np.pad(hypotheses, ((0, 0), (0, 0), (0, steps - index))))
        parents = generator.integers(0, beam_size, (2, beam_size), np.int32)
        last = generator.integers(2, VOCAB_SIZE, (2, beam_size), np.int32)
        state = decoder.select_beams(state, tf.constant(parents))
        hypotheses = np.take_along_axis(hypotheses, parents[:, :, None], axis=1)
        hypotheses = np.concatenate([hypotheses, last[:, :, None]], axis=2)
    whole = whole_targets(model, np.concatenate(targets, axis=1))
    for index, logits in enumerate(stepwise):
        expected = whole[:, index * beam_size :][:, :beam_size, index]
        np.testing.assert_allclose(logits, expected, atol=1e-5)


def test_selected_sentences_continue_as_in_a_batch_of_their_own(model, decoder_class):
    decoder = decoder_class(model, 2)
    past = np.array([[[4, 5], [6, 7]], [[8, 9], [10, 11]]], np.int32)
    _, state = run_steps(decoder, decoder.start(tf.constant(INPUTS)), past)
    state = decoder.select_sentences(state, tf.constant([1]))
    last = tf.constant(past[1:, :, -1])
    logits, state = decoder.step(last, tf.constant(2), state)
    targets = np.pad(past[1], ((0, 0), (0, 1)))
    whole = model({"inputs": INPUTS[[1, 1]], "targets": targets})
    np.testing.assert_allclose(logits[0], whole[:, -1], atol=1e-5)
    empty = decoder.select_sentences(state, tf.constant([], tf.int32))
    assert {tensor.shape[0] for tensor in tf.nest.flatten(empty)} == {0}


def search(arrays, decoder, **settings):
    """Searches with tensor2tensor's rules, which limit the length by batch."""
    inputs = tf.constant(arrays["inputs"])
    rows, width = arrays["inputs"].shape
    limit = width + int(arrays["decode_extra_length"])
    return beam_search(
        decoder,
        decoder.start(inputs),
        DecodingConfig(decoder.beam_size, tensor2tensor_rules=True, **settings),
        limits=tf.fill([rows], limit),
    )


def pad_to_same_length(ours, theirs):
    """Pads (..., length) ids with zeros to the same length."""
    length = max(ours.shape[-1], theirs.shape[-1])

    def pad(ids):
        sides = [(0, 0)] * (ids.ndim - 1) + [(0, length - ids.shape[-1])]
        return np.pad(ids, sides)

    return pad(ours), pad(theirs)


# The steps of both decoders are compared with each model, so the optimized one searches
# only with models whose caches differ.
@pytest.mark.medium
@pytest.mark.parametrize(
    ("case", "decoder_class"),
    [
        *((case, CachedDecoder) for case in CASES),
        *((case, KVCacheDecoder) for case in ("v1_postnorm", "v1_dk", "relative")),
    ],
)
def test_beam_search_equals_that_of_tensor2tensor(shared_dir, case, decoder_class):
    arrays, model = golden_case(shared_dir / "t2t/golden" / f"{case}.npz")
    every = search(arrays, decoder_class(model, 4), alpha=0.6, nbest=4)
    ids, expected = pad_to_same_length(every.ids.numpy(), arrays["beam4_all_ids"])
    np.testing.assert_array_equal(ids, expected)
    np.testing.assert_allclose(every.scores, arrays["beam4_all_scores"], atol=1e-3)


@pytest.mark.parametrize(
    "case", ["v1_postnorm", "v3_prenorm", "v3_notargetspace_vocabdiv"]
)
def test_greedy_search_equals_that_of_tensor2tensor(shared_dir, case, decoder_class):
    arrays, model = golden_case(shared_dir / "t2t/golden" / f"{case}.npz")
    decoder = decoder_class(model, 1)
    # tensor2tensor's greedy score is the log probability up to the first EOS.
    result = search(arrays, decoder, alpha=0.0)
    ids, theirs = pad_to_same_length(result.ids.numpy()[:, 0], arrays["greedy_ids"])
    # Ids after the first EOS are arbitrary in tensor2tensor and zero here.
    ended = np.cumsum(theirs == 1, axis=1) - (theirs == 1) > 0
    np.testing.assert_array_equal(ids, np.where(ended, 0, theirs))
    np.testing.assert_allclose(result.scores[:, 0], arrays["greedy_scores"], atol=1e-3)
