"""The whole model as a Keras user calls, trains and saves it."""

import os
import re
import subprocess
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import t2t_repro
from t2t_repro import layers
from tests import forks, sixteen_bits
from tests.keras_api.pairs import (
    PAIRS,
    SIZES,
    TARGETS,
    built,
    by_hand,
    compiled,
    small,
)

ROOT = Path(__file__).resolve().parents[2]
COPIES = {"inputs": TARGETS, "targets": TARGETS}


# Construction


def test_a_model_can_be_created_from_plain_values():
    logits = small(d_k=3, d_v=5, norm="pre", position="learned")(PAIRS)
    assert logits.shape == (16, 6, 20)
    assert logits.dtype == "float32"


def test_the_defaults_are_the_papers_base_model():
    model = t2t_repro.Transformer(100)
    by_name = t2t_repro.Transformer.from_hparams(
        "base", 100, target_space_embedding=False
    )
    for each in (model, by_name):
        each.build()
    shapes = [[(w.path, w.shape) for w in each.weights] for each in (model, by_name)]
    assert shapes[0] == shapes[1]


def test_from_hparams_accepts_a_set_and_changes():
    hparams = t2t_repro.hparams.load("tiny,num_layers=1")
    make = t2t_repro.Transformer.from_hparams
    for hparams_or_name in ("tiny,num_layers=1", hparams):
        model = make(hparams_or_name, 20)
        assert model.encoder.num_layers == 1
        assert model.d_model == hparams.d_model
    model = make(hparams, 20, num_layers=3, dropout=0.0)
    assert (model.encoder.num_layers, model.decoder.num_layers) == (3, 3)
    assert model(PAIRS, training=True).shape == (16, 6, 20)


def test_rejects_an_unknown_argument_by_name():
    for make in (
        lambda: t2t_repro.Transformer(20, **SIZES, sofmax_bias=True),
        lambda: t2t_repro.Transformer.from_hparams("tiny", 20, sofmax_bias=True),
    ):
        with pytest.raises(ValueError, match="sofmax_bias"):
            make()


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        (
            {"d_model": 30, "num_heads": 4},
            "d_model=30 is not a multiple of num_heads=4",
        ),
        ({"num_heads": 0}, "num_heads=0 must be at least 1"),
        ({"num_layers": 0}, "num_layers=0 must be at least 1"),
        ({"d_ff": 0}, "d_ff=0 must be at least 1"),
    ],
)
def test_rejects_impossible_sizes(sizes, words):
    with pytest.raises(ValueError, match=words):
        t2t_repro.Transformer(20, **(SIZES | sizes))


def test_heads_of_a_given_width_need_not_divide_d_model():
    model = small(d_model=10, num_heads=3, d_k=4, d_v=5)
    assert model(PAIRS).shape == (16, 6, 20)


def test_both_sides_can_have_different_vocabularies_and_depths():
    model = t2t_repro.Transformer(20, 30, **SIZES, num_decoder_layers=1)
    assert model(PAIRS).shape == (16, 6, 30)
    assert model.decoder.num_layers == 1


def test_summary_counts_every_parameter(capsys):
    model = small()
    model.build()
    model.summary()
    text = capsys.readouterr().out
    for part in ("embedding", "encoder", "decoder"):
        assert part in text
    assert f"Total params: {model.count_params():,}" in text


def test_summary_shows_the_output_of_each_table(capsys):
    for model, shapes in (
        (small(), [16]),
        (t2t_repro.Transformer(20, 30, **SIZES), [16, 16, 30]),
    ):
        model.build()
        model.summary(line_length=100)
        text = capsys.readouterr().out
        found = re.findall(r"TokenEmbedding\)\s*\S\s*\(None, None, (\d+)\)", text)
        assert [int(size) for size in found] == shapes


# Calls


@pytest.mark.parametrize(
    ("inputs", "kind"),
    [
        ((TARGETS, TARGETS), "not tuple"),
        (TARGETS, "not "),
        ({"inputs": TARGETS}, "not a dictionary with the keys inputs"),
    ],
)
def test_rejects_inputs_that_are_not_a_dictionary_of_both_sides(inputs, kind):
    with pytest.raises(ValueError, match=f'dictionary {{"inputs": .*{kind}'):
        small()(inputs)


def test_later_targets_do_not_affect_earlier_logits():
    model = small()
    other = np.where(np.arange(6) < 3, TARGETS, 7)
    one, two = (np.array(model(PAIRS | {"targets": t})) for t in (TARGETS, other))
    # The logits at index 3 depend only on the tokens before it.
    np.testing.assert_array_equal(one[:, :4], two[:, :4])
    assert np.abs(one[:, 4:] - two[:, 4:]).max() > 1e-3


def test_parts_of_an_unbuilt_model_can_be_called():
    model, whole = small(), small()
    encoder_output, mask = model.encode(PAIRS["inputs"])
    logits = model.logits(model.decode(TARGETS, encoder_output, mask))
    whole.build()
    assert [w.path for w in model.weights] == [w.path for w in whole.weights]
    np.testing.assert_allclose(model(PAIRS), logits, atol=1e-6)


def test_more_padding_does_not_change_the_logits():
    model = small()
    padded = {name: np.pad(ids, ((0, 0), (0, 4))) for name, ids in PAIRS.items()}
    output = np.array(model(padded))[:, :6]
    tokens = TARGETS != 0
    np.testing.assert_allclose(output[tokens], model(PAIRS)[tokens], atol=1e-5)


@pytest.mark.parametrize("jit", [False, True])
def test_a_compiled_function_computes_the_same(jit):
    model = small()
    expected = model(PAIRS)
    function = tf.function(model, jit_compile=jit)
    pairs = {name: tf.constant(ids) for name, ids in PAIRS.items()}
    np.testing.assert_allclose(function(pairs), expected, atol=1e-5)


def test_drops_only_in_training():
    model = small(dropout=0.3, attention_dropout=0.3, ffn_dropout=0.3)
    plain = np.array(model(PAIRS))
    np.testing.assert_array_equal(model(PAIRS, training=False), plain)
    one, two = (np.array(model(PAIRS, training=True)) for _ in range(2))
    assert np.abs(one - plain).max() > 1e-2
    assert np.abs(one - two).max() > 1e-2


@pytest.mark.parametrize("policy", sixteen_bits.both("mixed_"))
def test_a_mixed_policy_computes_in_16_bits_with_float32_weights(policy):
    model = small(dtype=policy)
    logits = model(PAIRS)
    assert logits.dtype == policy.removeprefix("mixed_")
    assert np.isfinite(tf.cast(logits, "float32")).all()
    assert {weight.dtype for weight in model.trainable_weights} == {"float32"}
    loss = compiled(model, run_eagerly=True).evaluate(PAIRS, TARGETS, verbose=0)
    assert np.isfinite(loss)


def test_gradients_reach_every_weight():
    model = t2t_repro.Transformer(
        20,
        30,
        **SIZES,
        norm="pre",
        position="learned",
        max_position=6,
        target_space_embedding=True,
    )
    model.build()
    with tf.GradientTape() as tape:
        loss = t2t_repro.losses.LabelSmoothedCrossEntropy()(TARGETS, model(PAIRS))
    gradients = tape.gradient(loss, [w.value for w in model.trainable_weights])
    for weight, gradient in zip(model.trainable_weights, gradients, strict=True):
        assert gradient is not None, weight.path
        assert np.abs(tf.convert_to_tensor(gradient)).max() > 0, weight.path


def test_works_as_a_layer_of_a_functional_model():
    inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in PAIRS}
    transformer = small()
    logits = transformer(inputs)
    assert logits.shape == (None, None, 20)
    model = keras.Model(inputs, keras.layers.Softmax()(logits))
    expected = keras.ops.softmax(transformer(PAIRS))
    np.testing.assert_allclose(model(PAIRS), expected, atol=1e-6)
    model.compile("sgd", "sparse_categorical_crossentropy", run_eagerly=True)
    assert np.isfinite(model.fit(PAIRS, TARGETS, verbose=0).history["loss"][0])


# Training


@pytest.mark.medium
def test_learns_to_copy():
    keras.utils.set_random_seed(1)
    model = compiled(built(dropout=0.0), 0.02, jit_compile="auto")
    # One epoch of 60 steps, because each epoch takes longer than its step.
    data = tf.data.Dataset.from_tensors((COPIES, TARGETS)).repeat(60)
    model.fit(data, verbose=0, shuffle=False)
    predicted = np.array(model(COPIES)).argmax(axis=-1)
    tokens = TARGETS != 0
    assert (predicted == TARGETS)[tokens].mean() > 0.95


def test_targets_are_the_labels_of_a_dataset_without_labels():
    data = tf.data.Dataset.from_tensor_slices(PAIRS).batch(16)
    model = compiled(small(), run_eagerly=True)
    expected = model.evaluate(PAIRS, TARGETS, verbose=0, batch_size=16)
    assert model.evaluate(data, verbose=0) == pytest.approx(expected, rel=1e-6)
    assert np.isfinite(model.fit(data, verbose=0, shuffle=False).history["loss"][0])


def test_evaluate_returns_the_mean_over_all_tokens():
    model = compiled(small())
    losses = by_hand(model(PAIRS), TARGETS)
    output = model.evaluate(PAIRS, TARGETS, verbose=0, batch_size=16)
    assert output == pytest.approx(losses.sum() / (TARGETS != 0).sum(), rel=1e-5)


@pytest.mark.parametrize(
    "shape", [pytest.param((16,), marks=pytest.mark.medium), (16, 6)]
)
def test_sample_weights_multiply_the_losses(shape):
    model = compiled(small(), run_eagerly=True)
    weights = np.random.default_rng(3).random(shape).astype("float32")
    losses = by_hand(model(PAIRS), TARGETS)
    wide = np.broadcast_to(weights.reshape(16, -1), (16, 6)) * (TARGETS != 0)
    output = model.evaluate(
        PAIRS, TARGETS, sample_weight=weights, verbose=0, batch_size=16
    )
    assert output == pytest.approx((losses * wide).sum() / wide.sum(), rel=1e-5)
    assert np.isfinite(
        model.fit(PAIRS, TARGETS, sample_weight=weights, verbose=0).history["loss"]
    ).all()


def test_predict_returns_the_logits():
    model = small(dropout=0.3)
    output = model.predict(PAIRS, verbose=0, batch_size=16)
    np.testing.assert_allclose(output, model(PAIRS), atol=1e-5)


def test_frozen_layers_do_not_learn():
    model = small()
    model.build()
    model.encoder.trainable = False
    before = {w.path: w.numpy() for w in model.weights}
    compiled(model, run_eagerly=True).fit(PAIRS, TARGETS, verbose=0)
    changed = {p for w in model.weights if (before[p := w.path] != w.numpy()).any()}
    assert changed == {p for p in before if not p.startswith("transformer/encoder/")}


REPLICAS = """
import numpy as np, tensorflow as tf, keras
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration()] * 2)
from tests.keras_api.pairs import PAIRS, TARGETS, built, compiled
losses = []
for strategy, run_eagerly in (
    (tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"]), False),
    (tf.distribute.get_strategy(), True),
):
    # All sentences have equal lengths, so the mean of means equals the mean.
    full = np.where(TARGETS == 0, 5, TARGETS)
    pairs = {"inputs": PAIRS["inputs"], "targets": full}
    data = tf.data.Dataset.from_tensor_slices((pairs, full)).batch(8)
    keras.utils.set_random_seed(1)
    with strategy.scope():
        model = compiled(built(dropout=0.0), run_eagerly=run_eagerly)
    losses.append(model.fit(data, epochs=2, verbose=0, shuffle=False).history["loss"])
    print(strategy.num_replicas_in_sync)
np.testing.assert_allclose(*losses, rtol=1e-4)
"""


@pytest.mark.medium
def test_two_replicas_train_like_one():
    process = subprocess.run(
        [forks.python(), "-c", REPLICAS],
        cwd=ROOT,
        env=os.environ | {"CUDA_VISIBLE_DEVICES": "-1"},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr[-3000:]
    assert process.stdout.split() == ["2", "1"]


# Saving


def test_a_model_can_be_recreated_from_its_config():
    nearby = layers.LocalAttention(2, 8, 8, radius=2)
    model = t2t_repro.Transformer(20, 30, **SIZES, norm="pre", self_attention=nearby)
    again = t2t_repro.Transformer.from_config(model.get_config())
    assert again.get_config() == model.get_config()
    expected = model(PAIRS)
    again.build()
    again.set_weights(model.get_weights())
    np.testing.assert_array_equal(again(PAIRS), expected)


def test_a_saved_model_loads_with_the_same_logits(tmp_path):
    model = small()
    expected = model(PAIRS)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again(PAIRS), expected)


@pytest.mark.medium
def test_a_saved_model_resumes_training(tmp_path):
    model = compiled(built(dropout=0.0), run_eagerly=True)
    model.fit(PAIRS, TARGETS, verbose=0, shuffle=False)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    one, two = (
        m.fit(PAIRS, TARGETS, epochs=2, verbose=0, shuffle=False).history["loss"]
        for m in (model, again)
    )
    np.testing.assert_allclose(one, two, rtol=1e-6)


def test_a_model_can_be_cloned():
    model = small()
    expected = model(PAIRS)
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    np.testing.assert_array_equal(clone(PAIRS), expected)


def test_saved_weights_load_into_a_new_model(tmp_path):
    model, fresh = small(), small()
    expected = model(PAIRS)
    model.save_weights(tmp_path / "model.weights.h5")
    fresh.build()
    fresh.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_array_equal(fresh(PAIRS), expected)


def test_a_tensorflow_checkpoint_contains_every_weight(tmp_path):
    model, fresh = small(norm="pre"), small(norm="pre")
    expected = model(PAIRS)
    path = tf.train.Checkpoint(model).save(str(tmp_path / "checkpoint"))
    fresh.build()
    tf.train.Checkpoint(fresh).restore(path).assert_existing_objects_matched()
    for one, other in zip(model.weights, fresh.weights, strict=True):
        np.testing.assert_array_equal(one, other, one.path)
    np.testing.assert_array_equal(fresh(PAIRS), expected)


@pytest.mark.medium
def test_an_exported_model_computes_the_same(tmp_path):
    model = small()
    expected = model(PAIRS)
    signature = {
        name: keras.InputSpec("int32", (None, None), name=name) for name in PAIRS
    }
    model.export(tmp_path / "export", verbose=False, input_signature=[signature])
    served = tf.saved_model.load(tmp_path / "export")
    pairs = {name: tf.constant(ids) for name, ids in PAIRS.items()}
    np.testing.assert_allclose(served.serve(pairs), expected, atol=1e-5)
