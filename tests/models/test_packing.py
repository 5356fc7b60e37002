"""Several sentence pairs in one row compute what they compute in rows of their own."""

import json

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro import fast
from t2t_repro.layers.masks import combine_masks, segment_mask
from t2t_repro.models.packing import packed_features
from t2t_repro.models.transformer import Transformer
from t2t_repro.training.losses import LabelSmoothedCrossEntropy
from tests import golden

SIDES = ("inputs", "targets")
VOCAB_SIZE = 30
PAIRS_PER_ROW = 5


def random_pairs(number, seed=0):
    """Returns pairs of 1 to 12 tokens per side, the last of which is EOS."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 12, [number, 2])
    return [[[*rng.integers(2, VOCAB_SIZE, n), 1] for n in pair] for pair in lengths]


def rectangle(rows, width):
    """Pads rows of ids with 0, int32 (rows, width)."""
    ids = np.zeros([len(rows), width], np.int32)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = row
    return ids


def packed(pairs):
    """Returns the inputs and targets of rows of `PAIRS_PER_ROW` pairs."""
    groups = [pairs[i : i + PAIRS_PER_ROW] for i in range(0, len(pairs), PAIRS_PER_ROW)]
    return [
        rectangle([[i for pair in group for i in pair[side]] for group in groups], 64)
        for side in range(2)
    ]


def separate(pairs):
    """Returns the inputs and targets with one pair per row."""
    return [rectangle([pair[side] for pair in pairs], 12) for side in range(2)]


def small_model(**options):
    model = Transformer(
        VOCAB_SIZE, d_model=16, num_layers=2, num_heads=2, d_ff=24, **options
    )
    model.build()
    rng = np.random.default_rng(1)
    model.set_weights([rng.normal(size=w.shape) * 0.3 for w in model.weights])
    return model


def test_segments_end_at_eos_and_positions_restart():
    ids = tf.constant([[7, 8, 1, 9, 1, 1, 0, 0], [5, 1, 6, 7, 8, 1, 3, 1]])
    features = packed_features(ids, ids[:, :5])
    expected = {
        "inputs_segmentation": [[1, 1, 1, 2, 2, 3, 0, 0], [1, 1, 2, 2, 2, 2, 3, 3]],
        "inputs_position": [[0, 1, 2, 0, 1, 0, 0, 0], [0, 1, 0, 1, 2, 3, 0, 1]],
        "targets_segmentation": [[1, 1, 1, 2, 2], [1, 1, 2, 2, 2]],
        "targets_position": [[0, 1, 2, 0, 1], [0, 1, 0, 1, 2]],
    }
    assert {n: v.numpy().tolist() for n, v in features.items() if n not in SIDES} == (
        expected
    )


def test_segments_and_positions_are_those_of_tensor2tensor(shared_dir):
    path = shared_dir / "t2t/golden/packing_and_trees.json"
    for row in json.loads(path.read_text())["packed"]:
        features = packed_features(*(tf.constant([row[side]]) for side in SIDES))
        for name, values in features.items():
            assert values[0].numpy().tolist() == row[name], name


@pytest.mark.medium
@pytest.mark.parametrize(("norm", "share"), [("post", True), ("pre", False)])
@pytest.mark.parametrize("optimized", [False, True])
def test_packed_pairs_have_the_same_loss_and_gradient(norm, share, optimized):
    if optimized:
        fast.install("CPU")
    model = small_model(norm=norm, share_embeddings=share)
    pairs = random_pairs(200)

    def differentiate(features):
        with tf.GradientTape() as tape:
            loss = LabelSmoothedCrossEntropy(label_smoothing=0.1)
            total, tokens = loss.sum_and_count(features["targets"], model(features))
        variables = [weight.value for weight in model.weights]
        gradients = tape.gradient(total, variables)
        return total, tokens, [tf.convert_to_tensor(g) for g in gradients]

    if optimized:  # Without the optimizations, tracing takes longer than the step.
        differentiate = tf.function(differentiate, autograph=False)
    results = differentiate(packed_features(*map(tf.constant, packed(pairs))))
    rows = dict(zip(SIDES, map(tf.constant, separate(pairs)), strict=True))
    total, tokens, gradients = differentiate(rows)
    assert results[1] == tokens == sum(len(target) for _, target in pairs)
    np.testing.assert_allclose(results[0], total, rtol=1e-5)
    for ours, expected in zip(results[2], gradients, strict=True):
        error = tf.linalg.norm(ours - expected)
        assert error < 1e-5 * tf.linalg.global_norm(gradients)


@pytest.mark.parametrize("side", [0, 1])
def test_pairs_do_not_see_each_other(side):
    model, pairs = small_model(), random_pairs(2 * PAIRS_PER_ROW)
    changed = [[list(ids) for ids in pair] for pair in pairs]
    number = next(i for i in range(1, 4) if len(pairs[i][side]) > 1)
    changed[number][side][0] = 2 if pairs[number][side][0] != 2 else 3

    def logits(pairs):
        return model(packed_features(*map(tf.constant, packed(pairs)))).numpy()

    before, after = logits(pairs), logits(changed)
    start = sum(len(target) for _, target in pairs[:number])
    own = np.zeros(before.shape[:2], bool)
    own[0, start : start + len(pairs[number][1])] = True
    others = (packed(pairs)[1] != 0) & ~own
    np.testing.assert_array_equal(before[others], after[others])
    assert (before[own] != after[own]).any()


def test_logits_are_those_of_tensor2tensor(shared_dir):
    arrays = golden.load(shared_dir / "t2t/golden/v3_packed.npz")
    model = golden.model_of(arrays, golden.hparams_of(arrays))
    features = packed_features(*(tf.constant(arrays[side]) for side in SIDES))
    for name, values in features.items():
        np.testing.assert_array_equal(values, arrays[name], err_msg=name)
    source, target = (features[f"{side}_segmentation"] for side in SIDES)
    encoder_output, mask = model.encode(
        features["inputs"], features["inputs_position"], source
    )
    close = {"atol": 1e-4, "rtol": 0}
    real = arrays["inputs"] != 0
    expected = arrays["encoder_output"][real]
    np.testing.assert_allclose(encoder_output.numpy()[real], expected, **close)

    # tensor2tensor does not restart the shift.
    ids = tf.pad(features["targets"], [[0, 0], [1, 0]])[:, :-1]
    x = model.step_input(ids, features["targets_position"])
    np.testing.assert_allclose(x, arrays["decoder_input"], **close)
    visible = combine_masks(segment_mask(target, source), mask)
    x = model.decoder(
        x, encoder_output, segment_mask(target, target), cross_attention_mask=visible
    )
    real = arrays["targets"] != 0
    logits = model.logits(x).numpy()
    np.testing.assert_allclose(logits[real], arrays["logits"][real], **close)

    # The first segments of the rows do not depend on that.
    first = arrays["targets_segmentation"] == 1
    logits = model(features).numpy()
    np.testing.assert_allclose(logits[first], arrays["logits"][first], **close)
