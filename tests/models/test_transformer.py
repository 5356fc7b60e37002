"""The model's outputs and parameter counts equal those of tensor2tensor."""

import json

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro import hparams as hparam_sets
from t2t_repro.layers.add_and_norm import LayerNormalization
from t2t_repro.layers.label_smoothing import smoothed_cross_entropy
from t2t_repro.layers.seeded_dropout import dropout_seed
from t2t_repro.models.transformer import Transformer
from t2t_repro.models.variables import named_variables, skip_initialization
from t2t_repro.training.losses import LabelSmoothedCrossEntropy
from tests import golden

CASES = ["v1_postnorm", "v3_prenorm", "v1_dk", "v1_posemb", "v3_unshared"]
CASES += ["v3_enc3dec1_1shard", "v3_notargetspace_vocabdiv", "relative"]


@pytest.mark.parametrize("case", CASES)
def test_every_stage_equals_that_of_tensor2tensor(shared_dir, case):
    arrays = golden.load(shared_dir / "t2t/golden" / f"{case}.npz")
    model = golden.model_of(arrays, golden.hparams_of(arrays))
    inputs, targets = arrays["inputs"], arrays["targets"]

    def close(ours, name, mask=None):
        difference = np.abs(np.array(ours) - arrays[name])
        if mask is not None:
            difference = difference * mask[..., None]
        assert difference.max() < 1e-4, name

    table = model.embedding if model.shared else model.input_embedding
    close(table(inputs), "embedded_inputs")
    encoder_output, mask = model.encode(inputs)
    close(encoder_output, "encoder_output", inputs != 0)
    close(model.decoder_input(targets), "decoder_input")
    decoder_output = model.decode(targets, encoder_output, mask)
    close(decoder_output, "decoder_output")
    logits = model({"inputs": inputs, "targets": targets})
    close(logits, "logits")

    labels = tf.constant(targets, tf.int32)
    for name, smoothing in (
        ("eval_xent", 0.0),
        ("smoothed_xent", float(arrays["label_smoothing"])),
    ):
        losses = smoothed_cross_entropy(logits, labels, smoothing)
        losses = np.array(losses) * (targets != 0)
        np.testing.assert_allclose(losses, arrays[name], atol=1e-5)
    cross_entropy = LabelSmoothedCrossEntropy(float(arrays["label_smoothing"]))
    labels = tf.constant(targets, tf.int32)
    total, tokens = cross_entropy.sum_and_count(labels, logits)
    assert float(tokens) == arrays["loss_den"]
    assert float(total / tokens) == pytest.approx(float(arrays["train_loss"]), abs=1e-5)


def count(hparams, vocab_size):
    model = Transformer.from_hparams(hparams, vocab_size)
    model.build()
    return sum(int(np.prod(v.shape)) for v in named_variables(model).values())


def test_base_has_the_expected_number_of_parameters():
    d, d_ff, layers, vocab_size = 512, 2048, 6, 37_000
    attention = 4 * d * d
    feed_forward = 2 * d * d_ff + d_ff + d
    norms = 2 * d
    encoder = layers * (attention + feed_forward + 2 * norms)
    decoder = layers * (2 * attention + feed_forward + 3 * norms)
    total = encoder + decoder + vocab_size * d + 32 * d
    assert total == 63_062_016
    assert count(hparam_sets.load("base"), vocab_size) == total


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("base", "transformer_base_v1"),
        ("t2t_base", "transformer_base"),
        ("t2t_big", "transformer_big"),
    ],
)
def test_sets_have_the_parameter_counts_of_tensor2tensor(shared_dir, ours, theirs):
    path = shared_dir / "t2t/golden/parameter_counts_vocab37000.json"
    expected = json.loads(path.read_text())[theirs]
    total = expected["total"] if isinstance(expected, dict) else expected
    assert count(hparam_sets.load(ours), 37_000) == total


def test_table_rows_are_rounded_up_to_a_multiple_of_the_divisor():
    model = Transformer.from_hparams(hparam_sets.load("tiny,vocab_divisor=8"), 203)
    model.build()
    assert model.embedding.table.shape[0] == model.vocab_size == 208


def test_variables_of_every_layer_have_names():
    model = Transformer.from_hparams(hparam_sets.load("tiny"), 100)
    model.build()
    names = named_variables(model)
    layers = {name.split("/")[1] for name in names if name.startswith("encoder/")}
    assert layers == {"layer_0", "layer_1"}
    # Two tables; per layer 4 or 8 projections, 4 feed-forward weights, 2 per norm.
    assert len(names) == 2 + 2 * (4 + 4 + 2 * 2) + 2 * (8 + 4 + 3 * 2)


def test_models_built_without_values_have_the_same_variables():
    def variables() -> dict[str, tuple]:
        model = Transformer.from_hparams("tiny,position=learned", 20)
        model.build()
        named = named_variables(model)
        return {name: (v.shape, v.dtype, v.trainable) for name, v in named.items()}

    with pytest.raises(KeyError), skip_initialization():
        empty = variables()
        raise KeyError
    assert empty == variables()
    # The initial values are those of the layers again.
    layer = LayerNormalization()
    layer.build((3,))
    assert layer.scale.numpy().tolist() == [1, 1, 1]


def test_dropout_depends_only_on_the_seed():
    model = Transformer.from_hparams("tiny", 50, dropout=0.5)
    ids = tf.constant([[5, 6, 1]])

    def logits(*seed):
        with dropout_seed(tf.constant(seed)):
            return np.array(model({"inputs": ids, "targets": ids}, training=True))

    np.testing.assert_array_equal(logits(1, 2), logits(1, 2))
    assert np.abs(logits(1, 2) - logits(2, 2)).max() > 1e-3
