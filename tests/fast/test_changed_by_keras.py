"""Optimized implementations decline layers that Keras has quantized or given LoRA."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro import fast
from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.fast.cached_decoder import KVCacheDecoder
from t2t_repro.fast.chunked_loss import loss_in_chunks
from t2t_repro.fast.static_decoder import StaticDecoder, transpose_step_weights
from t2t_repro.models import generate
from tests import tiny
from tests.arrays import random

pytestmark = [
    pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize`"),
]
INPUTS, TARGETS = np.array([[5, 6, 7, 1]]), np.array([[8, 9, 3, 1]])
# The memory of a four-token source would be folded.
SIZES = {"d_model": 12, "d_ff": 20, "num_heads": 2, "num_layers": 2}


def quantize(model):
    model.quantize("int8")


def add_lora(model):
    """Adds factors to the first of two layers, and to the table."""
    attentions = [model.decoder.layer_0.self_attention]
    attentions += [model.decoder.layer_0.cross_attention]
    attentions += [model.encoder.layer_0.self_attention]
    for attention in attentions:
        for layer in (attention.query, attention.value):
            layer.enable_lora(2)
            layer.lora_kernel_b.assign(random(*layer.lora_kernel_b.shape))
    table = model.softmax_table
    table.enable_lora(2)
    table.lora_embeddings_b.assign(random(*table.lora_embeddings_b.shape))


@pytest.fixture(params=[quantize, add_lora])
def model(request):
    model = tiny.random_model(23, 0.2, **SIZES)
    request.param(model)
    return model


def search(model):
    """Searches in a graph, with the implementations that are installed."""

    @tf.function(autograph=False)
    def find(inputs):
        config = DecodingConfig(beam_size=2, extra_length=2)
        result = generate.generate(config, generate.make_decoder(model, 2), inputs)
        return result.ids, result.scores

    return find(tf.constant(INPUTS))


def compute_logits(model, output):
    """Computes the logits of the model and of the static decoder, and their loss."""

    def loss(targets, logits):
        return tf.reduce_sum(logits), tf.reduce_sum(targets)

    @tf.function(autograph=False)
    def compute(inputs):
        whole = model({"inputs": inputs, "targets": TARGETS})
        memory = KVCacheDecoder(model, 1).read(inputs)
        decoder = StaticDecoder(model, 1, 4, transpose_step_weights(model), memory)
        state, logits = decoder.start(inputs), []
        for index, last in enumerate([0, *TARGETS[0, :-1]]):
            step, state = decoder.step(tf.constant([[last]]), tf.constant(index), state)
            logits.append(step[:, 0])
        total, _ = loss_in_chunks(model.softmax_table, output, inputs, loss)
        return whole, tf.stack(logits, 1), total

    return compute(tf.constant(INPUTS))


@pytest.mark.medium
def test_results_are_those_of_the_reference(model):
    expected = np.array(model({"inputs": INPUTS, "targets": TARGETS}))
    output = model({"inputs": INPUTS, "targets": TARGETS}, project=False)
    expected_ids, expected_scores = search(model)
    fast.install("CPU")
    ids, scores = search(model)
    whole, stepwise, total = compute_logits(model, output)
    # A last bit that differs before rounding to int8 changes an integer by 1.
    is_int8 = model.softmax_table.quantization_mode == "int8"
    atol = 0.03 * np.abs(expected).max() if is_int8 else 1e-4
    np.testing.assert_array_equal(ids, expected_ids)
    np.testing.assert_allclose(scores, expected_scores, atol=atol)
    np.testing.assert_allclose(whole, expected, atol=atol)
    np.testing.assert_allclose(stepwise, expected, atol=atol)
    np.testing.assert_allclose(total, np.sum(expected), atol=1e-2)
