"""Test of the export of a model with local self-attention."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.serving.saved_model import write_saved_model
from t2t_repro.serving.signatures import ServingModule
from t2t_repro.translation.translator import Translator
from tests.serving import small

pytestmark = pytest.mark.medium


def test_an_export_translates_like_the_model(tokenizer, tmp_path):
    model = small.random_model(small.VOCAB_SIZE, self_attention_radius=1)
    search = DecodingConfig(beam_size=2, extra_length=small.EXTRA_LENGTH)
    module = ServingModule([model], tokenizer, search, small.MAX_INPUT_LENGTH)
    module.functions = {"serving_default": module.functions["serving_default"]}
    write_saved_model(module, tmp_path / "exported")
    loaded = tf.saved_model.load(str(tmp_path / "exported"))
    texts = small.sentences(6)
    served = loaded.signatures["serving_default"](text=tf.constant(texts))
    translator = Translator(model, tokenizer, search, small.MAX_INPUT_LENGTH)
    lines = list(translator.translate_lines(texts))
    assert [text.decode() for text in served["translations"].numpy()] == [
        line.text for line in lines
    ]
    scores = [line.score for line in lines]
    np.testing.assert_allclose(served["scores"], scores, atol=1e-4)
    # The scores of a model without the restriction would be different.
    wide = small.random_model(small.VOCAB_SIZE)
    ids = tokenizer.encode(tf.constant(texts)).to_tensor()
    pairs = {"inputs": ids, "targets": ids}
    assert np.abs(model(pairs) - wide(pairs)).max() > 0.1
