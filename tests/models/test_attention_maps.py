"""Attention maps equal tensor2tensor's and respect the masks."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.hparams import HParams
from t2t_repro.models.attention_maps import attention_maps
from t2t_repro.models.transformer import Transformer
from tests import golden

INPUTS = tf.constant([[5, 6, 7, 8, 1], [9, 4, 1, 0, 0]])
TARGETS = tf.constant([[4, 5, 1], [6, 1, 0]])


@pytest.mark.parametrize("far", [0, 2])
def test_weights_sum_to_one_and_are_zero_at_masked_positions(far):
    hparams = HParams(
        d_model=12, d_ff=20, num_heads=3, num_layers=2, max_relative_position=far
    )
    model = Transformer.from_hparams(hparams, 23)
    model.build()
    maps = attention_maps(model, INPUTS, TARGETS)
    kinds = ("encoder/layer_{}/self", "decoder/layer_{}/self", "decoder/layer_{}/cross")
    assert set(maps) == {f"{k.format(n)}_attention" for k in kinds for n in range(2)}
    for name, weights in maps.items():
        np.testing.assert_allclose(tf.reduce_sum(weights, -1), 1, atol=1e-6)
        if name.startswith("encoder") or name.endswith("cross_attention"):
            assert np.array(weights)[1, :, :, 3:].max() == 0
        else:
            assert np.triu(np.array(weights), 1).max() == 0
    # The first target token attends only to itself.
    weight = maps["decoder/layer_0/self_attention"][0, 0, 0, 0]
    np.testing.assert_allclose(weight, 1, atol=1e-6)


@pytest.mark.parametrize("far", [0, 2])
def test_local_self_attention_has_weights_only_within_the_radius(far):
    hparams = HParams(
        d_model=12,
        d_ff=20,
        num_heads=3,
        num_layers=2,
        max_relative_position=far,
        self_attention_radius=1,
    )
    model = Transformer.from_hparams(hparams, 23)
    model.build()
    maps = attention_maps(model, INPUTS[:1], TARGETS[:1])
    for layer in range(2):
        weights = np.array(maps[f"encoder/layer_{layer}/self_attention"])
        assert weights[0, :, 0, 2:].max() == 0
        assert weights[0, :, 2, [0, 4]].max() == 0
        assert weights[0, :, 2, 1:4].min() > 0
        weights = np.array(maps[f"decoder/layer_{layer}/self_attention"])
        assert weights[0, :, 2, 0].max() == 0
        assert weights[0, :, 2, 1:].min() > 0
        # Cross-attention covers the whole source.
        assert np.array(maps[f"decoder/layer_{layer}/cross_attention"]).min() > 0


@pytest.mark.parametrize("case", ["v1_postnorm", "v3_prenorm"])
def test_maps_equal_those_of_tensor2tensor(shared_dir, case):
    arrays = golden.load(shared_dir / "t2t/golden" / f"{case}.npz")
    model = golden.model_of(arrays, golden.hparams_of(arrays))
    inputs, targets = arrays["inputs"], arrays["targets"]
    maps = attention_maps(model, tf.constant(inputs), tf.constant(targets))
    theirs = {k: v for k, v in arrays.items() if k.startswith("att/")}
    assert len(maps) == len(theirs)
    for name, weights in maps.items():
        scope = name.replace("cross_attention", "encdec_attention")
        scope = f"att/transformer/body/{scope}/multihead_attention"
        difference = np.abs(weights - theirs[f"{scope}/dot_product_attention"])
        if name.startswith("encoder"):
            # tensor2tensor skips sub-layers at padding queries.
            difference *= (inputs != 0)[:, None, :, None]
        assert difference.max() < 1e-4, name
