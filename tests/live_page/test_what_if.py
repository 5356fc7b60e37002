"""Tests of the live page's what-if changes against the same changes in Python."""

import numpy as np
import pytest
import tensorflow as tf

pytest.importorskip("selenium.webdriver", reason="selenium is absent")

from tests import tiny
from tests.live_page.live_model import call

pytestmark = pytest.mark.medium


def silent_head(live):
    model = live.new_model()
    kernel = model.decoder.layer_1.cross_attention.output_projection.kernel
    value = kernel.numpy()
    value[8:] = 0  # The rows of W_O that read the second head.
    kernel.assign(value)
    return model


def unscaled(live):
    model = live.new_model()
    for stack in (model.encoder, model.decoder):
        for layer in stack.layers_in_order():
            for name in ("self_attention", "cross_attention"):
                if hasattr(layer, name):
                    query = getattr(layer, name).query.kernel
                    query.assign(query * 8**0.5)
    return model


def no_positions(live):
    return live.new_model(position="none")


def no_residual(live):
    model = live.new_model()
    residual = model.encoder.layer_0.feed_forward_residual
    residual.call = lambda x, sublayer, training=None: residual.layer_norm(sublayer(x))
    return model


def no_causal_mask(live):
    model = live.new_model()
    for layer in model.decoder.layers_in_order():
        attention = layer.self_attention
        plain = attention.call
        attention.call = lambda *args, use_causal_mask, plain=plain, **named: plain(
            *args, **named
        )
    return model


@pytest.mark.parametrize(
    ("change", "changes"),
    [
        (silent_head, {"heads": ["decoder/layer_1/cross_attention/1"]}),
        (unscaled, {"unscaled": True}),
        (no_positions, {"noPositions": True}),
        (no_residual, {"residuals": ["encoder/layer_0/feed_forward_residual"]}),
        (no_causal_mask, {"noCausalMask": True}),
    ],
)
def test_what_if_equals_the_same_change_in_python(live, change, changes):
    """Compares the translations and reference scores of fifteen sentences."""
    pairs = tiny.pairs("train")[:15]
    model = change(live)
    texts = [source for source, _ in pairs]
    live.assert_translations(texts, live.translations(texts, model), changes)

    for texts_of_pair in pairs:
        pair = [live.ids(text) for text in texts_of_pair]
        # Sentences are not batched: without a causal mask, padding would be visible.
        inputs, targets = (tf.constant([ids]) for ids in pair)
        logits = model({"inputs": inputs, "targets": targets})[0]
        log_probs = tf.nn.log_softmax(logits).numpy()
        expected = log_probs[range(len(pair[1])), pair[1]]
        changed, unchanged = (
            np.array(
                [each["logProb"] for each in call(live.page, "score", *pair, *options)]
            )
            for options in ([changes], [])
        )
        np.testing.assert_allclose(changed, expected, atol=1e-4)
        assert abs(unchanged - expected).max() > 1e-3
