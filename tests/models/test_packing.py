"""Sentences that share a row do not see each other."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.hparams import HParams
from t2t_repro.layers.masks import Packing
from t2t_repro.models.transformer import Transformer
from tests import golden

# Two sentence pairs in one row; the second pair's source is the longer one.
SOURCES, TARGETS = [[5, 6, 1], [7, 8, 9, 1]], [[4, 3, 1], [9, 1]]


def in_one_row(sentences):
    """Returns ids, segments and positions of sentences in one row."""
    ids = [n for sentence in sentences for n in sentence]
    segments = [n for n, s in enumerate(sentences, 1) for _ in s]
    positions = [n for s in sentences for n in range(len(s))]
    return [tf.constant([row]) for row in (ids, segments, positions)]


@pytest.fixture(scope="module")
def model():
    made = Transformer(HParams(d_model=12, d_ff=20, num_heads=3, num_layers=2), 23)
    made.build()
    return made


def test_a_packed_sentence_is_encoded_as_if_alone(model):
    inputs, *inputs_packing = in_one_row(SOURCES)
    _, *targets_packing = in_one_row(TARGETS)
    packing = Packing(*inputs_packing, *targets_packing)
    packed, _ = model.encode(inputs, packing=packing)
    alone = [model.encode(tf.constant([source]))[0] for source in SOURCES]
    np.testing.assert_allclose(packed, tf.concat(alone, axis=1), atol=1e-6)


def test_a_packed_target_sees_its_own_past_and_source_alone(model):
    inputs, *inputs_packing = in_one_row(SOURCES)
    targets, *targets_packing = in_one_row(TARGETS)
    packing = Packing(*inputs_packing, *targets_packing)
    packed = model(inputs, targets, packing=packing)
    first = model(tf.constant(SOURCES[:1]), tf.constant(TARGETS[:1]))
    np.testing.assert_allclose(packed[:, :3], first, atol=1e-5)
    # Another first pair of the same lengths leaves the second as it is.
    others = [[2, 10, 1], SOURCES[1]], [[10, 11, 1], TARGETS[1]]
    inputs, targets = (in_one_row(sentences)[0] for sentences in others)
    again = model(inputs, targets, packing=packing)
    np.testing.assert_allclose(packed[:, 3:], again[:, 3:], atol=1e-5)
    assert np.abs(packed[:, :3] - again[:, :3]).max() > 1e-3


def test_packed_rows_are_those_of_tensor2tensor(shared_dir):
    arrays = golden.load(shared_dir / "t2t/golden/v3_packed.npz")
    model = golden.model_of(arrays, golden.hparams_of(arrays))
    packing = Packing(*(tf.constant(arrays[field]) for field in Packing._fields))
    logits = model(arrays["inputs"], arrays["targets"], packing=packing)
    # Padding attends to the source's padding, where tensor2tensor computed less.
    difference = np.abs(logits - arrays["logits"]) * (arrays["targets"] != 0)[..., None]
    assert difference.max() < 1e-4
