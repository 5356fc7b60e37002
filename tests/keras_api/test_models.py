"""Models that a Keras user builds from the layers, trains and saves."""

import copy
import pickle

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_repro import layers
from tests.arrays import random
from tests.keras_api.every_layer import CASES, SIZES

IDS = np.random.default_rng(0).integers(0, 10, (32, 6)).astype("int32")
LABELS = (IDS == 3).any(axis=1).astype("int32")


def classifier(dropout=0.0):
    """Creates a classifier of sentences with two classes."""
    inputs = keras.Input((None,), dtype="int32")
    x = layers.TokenEmbedding(10, 8, mask_zero=True, name="embedding")(inputs)
    x = layers.PositionalEncoding()(x)
    x = layers.EncoderLayer(**SIZES, dropout=dropout, name="encoder_layer")(x)
    x = keras.layers.GlobalAveragePooling1D()(x)
    return keras.Model(inputs, keras.layers.Dense(2, name="classes")(x))


def compiled(model, learning_rate=0.02, **options):
    model.compile(
        keras.optimizers.Adam(learning_rate),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        **({"jit_compile": False} | options),
    )
    if model.built:
        # A step that creates variables is traced twice.
        model.optimizer.build(model.trainable_variables)
    return model


class Tagger(keras.Model):
    """Subclassed model with layers as attributes."""

    def __init__(self):
        super().__init__()
        self.embedding = layers.TokenEmbedding(10, 8)
        self.encoder = layers.Encoder(2, **SIZES, dropout=0.1)

    def call(self, ids, training=None):
        mask = layers.padding_mask(ids)
        x = self.encoder(self.embedding(ids), attention_mask=mask, training=training)
        return self.embedding(x, reverse=True)


@pytest.mark.medium
def test_a_functional_classifier_learns():
    keras.utils.set_random_seed(1)
    model = compiled(classifier(), jit_compile="auto")
    history = model.fit(IDS, LABELS, epochs=20, verbose=0).history
    assert history["loss"][-1] < 0.5 * history["loss"][0]
    assert history["accuracy"][-1] > 0.9


def test_a_sequential_model_of_layers_learns():
    model = keras.Sequential(
        [
            layers.TokenEmbedding(10, 8, mask_zero=True),
            layers.LearnedPosition(20),
            layers.EncoderLayer(**SIZES),
            layers.EncoderLayer(**SIZES, norm="pre"),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(2),
        ]
    )
    compiled(model, run_eagerly=True)
    losses = model.fit(IDS, LABELS, epochs=3, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    assert model.predict(IDS, verbose=0).shape == (32, 2)


def test_a_table_embeds_tokens_and_computes_logits():
    inputs = keras.Input((None,), dtype="int32")
    table = layers.TokenEmbedding(10, 8)
    model = keras.Model(inputs, table(table(inputs), reverse=True))
    assert len(model.trainable_weights) == 1
    rows = table.table.numpy()
    expected = rows[IDS] * (IDS != 0)[..., None] * 8**0.5 @ rows.T
    np.testing.assert_allclose(model(IDS), expected, rtol=1e-5, atol=1e-5)


def test_layers_work_inside_a_users_layer():
    class Block(keras.layers.Layer):
        def __init__(self):
            super().__init__(name="block")
            self.attention = layers.MultiHeadAttention(2, 4, 4)
            self.network = layers.FeedForward(12)

        def call(self, x):
            return self.network(self.attention(x, x, use_causal_mask=True))

    block = Block()
    x = random(2, 3, 8)
    assert block(x).shape == (2, 3, 8)
    # Four projections, and two kernels with biases.
    assert len(block.trainable_weights) == 8
    assert {w.path.split("/")[0] for w in block.weights} == {"block"}


def test_a_custom_training_step_learns():
    model = classifier(dropout=0.1)
    optimizer = keras.optimizers.SGD(0.1)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def step(ids, labels):
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(ids, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply(gradients, model.trainable_variables)
        return loss

    losses = [float(step(tf.constant(IDS), tf.constant(LABELS))) for _ in range(30)]
    assert np.mean(losses[-5:]) < np.mean(losses[:5])


@pytest.mark.medium
def test_masks_differ_between_steps_and_repeat_with_the_generators_state():
    model = compiled(classifier(dropout=0.5), learning_rate=0.0)
    states = [
        v
        for layer in model._flatten_layers()
        if isinstance(layer, layers.Dropout)
        for v in layer.variables
    ]
    before = [v.numpy() for v in states]

    def losses():
        history = model.fit(IDS, LABELS, epochs=3, verbose=0, shuffle=False)
        return history.history["loss"]

    first = losses()
    assert len(set(first)) == 3
    assert losses() != first
    for state, value in zip(states, before, strict=True):
        state.assign(value)
    np.testing.assert_allclose(losses(), first, rtol=1e-6)


# Saving


@pytest.mark.parametrize("name", [n for n in CASES if "Residual" not in n])
def test_a_model_of_each_layer_can_be_saved_and_loaded(name, tmp_path):
    case = CASES[name]
    inputs = [
        keras.Input((None, *each.shape[2:]), dtype=str(each.dtype))
        for each in case.inputs
    ]
    model = keras.Model(inputs, case.make(name="layer")(*inputs))
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert (
        again.get_layer("layer").get_config() == model.get_layer("layer").get_config()
    )
    np.testing.assert_array_equal(again(case.inputs), model(case.inputs))


def test_a_model_that_computes_a_mask_can_be_saved(tmp_path):
    inputs = keras.Input((None,), dtype="int32")
    x = layers.TokenEmbedding(10, 8)(inputs)
    mask = layers.padding_mask(inputs)
    model = keras.Model(inputs, layers.EncoderLayer(**SIZES)(x, attention_mask=mask))
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again(IDS), model(IDS))


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))]
)
def test_a_model_can_be_copied(copied):
    model = classifier()
    np.testing.assert_array_equal(copied(model)(IDS), model(IDS))


def test_saved_weights_load_into_a_new_model(tmp_path):
    model, fresh = classifier(), classifier()
    assert np.abs(np.array(fresh(IDS)) - np.array(model(IDS))).max() > 1e-3
    model.save_weights(tmp_path / "model.weights.h5")
    fresh.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_array_equal(fresh(IDS), model(IDS))


def test_a_model_can_be_cloned():
    model = classifier()
    clone = keras.models.clone_model(model)
    assert [w.shape for w in clone.weights] == [w.shape for w in model.weights]
    clone.set_weights(model.get_weights())
    np.testing.assert_array_equal(clone(IDS), model(IDS))


@pytest.mark.medium
def test_an_exported_model_computes_the_same(tmp_path):
    model = Tagger()
    expected = model(IDS)
    signature = [keras.InputSpec("int32", (None, None))]
    model.export(tmp_path / "export", verbose=False, input_signature=signature)
    served = tf.saved_model.load(tmp_path / "export")
    np.testing.assert_allclose(served.serve(tf.constant(IDS)), expected, atol=1e-6)
    longer = tf.constant(np.pad(IDS, ((0, 0), (0, 3))))
    np.testing.assert_allclose(served.serve(longer), model(longer), atol=1e-6)
