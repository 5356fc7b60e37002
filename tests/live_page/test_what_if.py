"""Tests of the live page's what-if changes against the same changes in Python."""

import numpy as np
import pytest

pytest.importorskip("selenium.webdriver", reason="selenium is absent")

from t2t_repro.translation.translator import Translator
from tests import tiny
from tests.live_page.live_model import SEARCH

pytestmark = pytest.mark.medium


def silent_head(model):
    kernel = model.decoder.layer_1.cross_attention.output_projection.kernel
    value = kernel.numpy()
    value[8:] = 0  # The rows of W_O that read the second head.
    kernel.assign(value)


def unscaled(model):
    for stack in (model.encoder, model.decoder):
        for layer in stack.layers_in_order():
            for name in ("self_attention", "cross_attention"):
                if hasattr(layer, name):
                    query = getattr(layer, name).query.kernel
                    query.assign(query * 8**0.5)


def no_residual(model):
    residual = model.encoder.layer_0.feed_forward_residual
    residual.call = lambda x, sublayer, training=None: residual.layer_norm(sublayer(x))


def no_causal_mask(model):
    for layer in model.decoder.layers_in_order():
        attention = layer.self_attention
        plain = attention.call
        attention.call = lambda *args, use_causal_mask, plain=plain, **named: plain(
            *args, **named
        )


SILENT_HEAD = {"heads": ["decoder/layer_1/cross_attention/1"]}
NO_RESIDUAL = {"residuals": ["encoder/layer_0/feed_forward_residual"]}
PAIRS = tiny.pairs("train")


@pytest.mark.parametrize(
    ("change", "changes"),
    [
        (silent_head, SILENT_HEAD),
        (unscaled, {"unscaled": True}),
        (None, {"noPositions": True}),
        (no_residual, NO_RESIDUAL),
        (no_causal_mask, {"noCausalMask": True}),
    ],
)
def test_what_if_equals_the_same_change_in_python(live, change, changes):
    """Compares the scores of three references."""
    if change is None:
        model = live.new_model(position="none")
    else:
        model = live.new_model()
        change(model)
    pairs = PAIRS[:3]
    for pair, expected in zip(
        pairs, live.assert_scores(pairs, model, changes), strict=True
    ):
        unchanged = np.array(live.scores([live.ids(text) for text in pair]))
        assert abs(unchanged - expected).max() > 1e-3


def test_changes_can_be_combined(live):
    """Compares the translations of ten sentences with all changes."""
    model = live.new_model(position="none")
    for change in (silent_head, unscaled, no_residual, no_causal_mask):
        change(model)
    texts = [source for source, _ in PAIRS[:10]]
    expected = live.translations(texts, Translator(model, live.tokenizer, SEARCH))
    changes = {"unscaled": True, "noPositions": True, "noCausalMask": True}
    live.assert_translations(texts, expected, changes | SILENT_HEAD | NO_RESIDUAL)
