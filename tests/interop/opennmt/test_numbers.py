"""Tests of imported models against outputs of OpenNMT-tf."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.layers.label_smoothing import entropy_of_smoothing
from t2t_repro.models import generate
from t2t_repro.training.losses import LabelSmoothedCrossEntropy
from tests.interop.opennmt import vectors as opennmt_vectors

SEARCHES = {
    "greedy": (1, 0.0),
    "beam4": (4, 0.0),
    "beam4_0.6": (4, 0.6),
    "beam6_1.5": (6, 1.5),
}
# Every search with one model, and one search with the other models and formulas.
RUNS = [
    *(("base", "fast", name) for name in SEARCHES),
    ("base", "plain", "beam4_0.6"),
    ("relative", "fast", "beam4_0.6"),
    ("post", "plain", "beam4_0.6"),
]


@pytest.fixture(scope="module", params=opennmt_vectors.CASES)
def vectors(request, tmp_path_factory):
    return opennmt_vectors.load(request.param, tmp_path_factory.mktemp("opennmt"))


def test_tokenization_is_equal(vectors):
    sources, targets = vectors.batch()
    arrays, ids = vectors.arrays, vectors.ids
    for row, length in enumerate(arrays["source_lengths"]):
        theirs = ids[0][arrays["source_ids"][row, :length]]
        # Sources here always end with EOS; `source_end` is False if the encoder must
        # ignore it.
        ours = sources[row][sources[row] > 0]
        assert ours.tolist() in (theirs.tolist(), [*theirs, 1])
        assert vectors.read.hparams.source_end == (len(ours) == length)
    for row, length in enumerate(arrays["target_lengths"]):
        theirs = ids[1][arrays["target_ids"][row, :length]]
        assert targets[row][targets[row] > 0].tolist() == theirs.tolist()


def test_encoder_output_and_logits_are_equal(vectors, formulas):
    sources, targets = vectors.batch()
    arrays = vectors.arrays
    output, _ = vectors.model.encode(sources)
    logits = vectors.model({"inputs": sources, "targets": targets})
    for row, length in enumerate(arrays["source_lengths"]):
        expected = arrays["encoder_output"][row, :length]
        np.testing.assert_allclose(output[row, :length], expected, atol=1e-4, rtol=0)
    for row, length in enumerate(arrays["target_lengths"]):
        ours = logits[row, :length].numpy()[:, vectors.ids[1]]
        expected = arrays["logits"][row, :length]
        np.testing.assert_allclose(ours, expected, atol=1e-4, rtol=0)
        assert (logits[row, :length, 0].numpy() < -5000).all()


def test_losses_are_equal(vectors):
    sources, targets = vectors.batch()
    logits = vectors.model({"inputs": sources, "targets": targets})
    for name, smoothing in (("loss", 0.0), ("smoothed_loss", 0.1)):
        cross_entropy = LabelSmoothedCrossEntropy(smoothing, without_padding=True)
        loss, tokens = cross_entropy.sum_and_count(targets, logits)
        expected, expected_tokens = vectors.arrays[name]
        assert tokens == expected_tokens
        # OpenNMT-tf does not subtract the entropy of the smoothed labels.
        if smoothing:
            pieces = vectors.arrays["logits"].shape[-1]
            loss += tokens * entropy_of_smoothing(smoothing, pieces)
        np.testing.assert_allclose(loss, expected, rtol=1e-5)


@pytest.mark.medium
@pytest.mark.parametrize(
    ("vectors", "formulas", "name"), RUNS, indirect=["vectors", "formulas"]
)
def test_all_hypotheses_of_a_search_are_equal(vectors, formulas, name):
    beam_size, alpha = SEARCHES[name]
    search = DecodingConfig(
        beam_size,
        alpha,
        extra_length=12,
        nbest=beam_size,
        algorithm="opennmt",
        length_factor=0.0,
    )
    sources, _ = vectors.batch()
    decoder = generate.make_decoder(vectors.model, beam_size)

    @tf.function(autograph=False)
    def run_search(inputs):
        return generate.generate(search, decoder, inputs)

    ids = run_search(tf.constant(sources)).ids.numpy()
    lengths = set()
    for row, expected in enumerate(vectors.arrays[f"ids/{name}"]):
        for rank, theirs in enumerate(vectors.ids[1][expected]):
            ours = ids[row, rank][ids[row, rank] > 0]
            expected_ids = theirs[theirs != 1].tolist()
            assert ours[ours != 1].tolist() == expected_ids
            lengths.add(len(expected_ids))
    assert beam_size == 1 or len(lengths) > 2
