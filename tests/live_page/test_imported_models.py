"""Tests of the live page of imported models against the models in Python."""

import numpy as np
import pytest
import tensorflow as tf

pytest.importorskip("selenium.webdriver", reason="selenium is absent")

from t2t_repro.models.attention_maps import attention_maps
from tests import tiny
from tests.live_page.live_model import Live, call, rows

pytestmark = pytest.mark.medium

TEXTS = [source for source, _ in tiny.pairs("train")[:12]]
TEXTS += [
    *("", "\u2581", "one", "x y z one", "<unk> </s>", "\u2581one"),
    *(">>deu<< one two", ">>fra<< one", " >>deu<< one", "ein \ufb01 one", "Ω one"),
]
MARIAN = {
    "tokenizer": "marian",
    "target_space_embedding": False,
    "attention_bias": True,
    "softmax_bias": True,
}
OPUS = MARIAN | {
    "search": "marian",
    "alpha": 1.0,
    "decode_length_factor": 1.3,
    "decode_extra_length": 0,
    "allow_unknown": False,
    "activation": "swish",
    "norm_epsilon": 1e-9,
}
TRANSFORMERS = MARIAN | {
    "search": "transformers",
    "decode_length_factor": 0.0,
    "decode_extra_length": 9,
    "activation": "gelu",
    "norm_epsilon": 1e-5,
    "position": "sinusoid_halves",
    "share_embeddings": False,
    "tie_target": True,
}
SIDES = {"share_vocab": False, "share_embeddings": False, "num_layers": 1}


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("marian", OPUS),
        ("marian", TRANSFORMERS),
        ("sides", SIDES),
    ],
)
def test_page_computes_what_python_computes(browser, tmp_path, kind, settings):
    live = Live(browser, tmp_path, kind, **settings)
    encoder = live.tokenizer.plain
    assert [call(browser, "read", text)["ids"] for text in TEXTS] == [
        encoder.encode(text) for text in TEXTS
    ]
    target = encoder.encode_target("eins zwei drei")
    assert call(browser, "read", "eins zwei drei", "target")["ids"] == target
    expected = live.translations(TEXTS)
    assert len({each.text for each in expected}) > 8
    live.assert_translations(TEXTS, expected)

    source = encoder.encode("one two three")
    tensors = call(browser, "inspect", source, target)
    inputs = {"inputs": tf.constant([source]), "targets": tf.constant([target])}
    np.testing.assert_allclose(
        rows(tensors["logits"]), live.model(inputs)[0], rtol=1e-5, atol=1e-4
    )
    for name, weights in attention_maps(live.model, *inputs.values()).items():
        steps = tensors[f"{name}/steps"]
        heads = [rows([row["weights"] for row in head]) for head in steps]
        np.testing.assert_allclose(heads, weights[0], atol=1e-4)
