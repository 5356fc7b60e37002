"""Tests of copies of weights that parallel searches share."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.fast.cached_decoder import SharedCopies
from t2t_repro.models.generate import decoder_of
from t2t_repro.translation.translator import Translator
from tests import tiny


@pytest.mark.medium
@pytest.mark.usefixtures("fast_implementations")
def test_searches_with_shared_copies_find_the_same_translations(tmp_path):
    model, tokenizer = tiny.random_model(), tiny.tokenizer(tmp_path)
    decoder = decoder_of(model, 3)
    translator = Translator(
        model, tokenizer, DecodingConfig(beam_size=3, extra_length=3)
    )
    inputs = translator.encode(tf.constant(["one two", "ten"] * 8))
    for scale in (1.0, -1.0):
        for variable in model.trainable_variables:
            variable.assign(variable * scale)
        any_rows, few_rows = (SharedCopies(decoder, most) for most in (16, 1))
        # 3 and 48 rows: the former need no copies, and later the same copies are used.
        for rows, copies in (
            (inputs[:1], few_rows),
            (inputs[:1], any_rows),
            (inputs, any_rows),
            (inputs[::-1], any_rows),
        ):
            expected = translator.translate_ids(rows)
            shared = translator.translate_ids(rows, copies=copies)
            np.testing.assert_array_equal(shared[0], expected[0])
            np.testing.assert_allclose(shared[1], expected[1], rtol=1e-6)
