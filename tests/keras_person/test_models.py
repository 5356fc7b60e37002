"""What Keras people build of the layers, train, save and hand on."""

import copy
import pickle

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_repro import layers
from tests import sixteen_bits
from tests.keras_person.every_layer import CASES, SIZES, random

# Keras' saving reads TensorFlow's variables in a way that is new in NumPy 2.
pytestmark = pytest.mark.filterwarnings(
    "ignore:__array__ implementation doesn't accept a copy:DeprecationWarning"
)
IDS = np.random.default_rng(0).integers(0, 10, (32, 6)).astype("int32")
LABELS = (IDS == 3).any(axis=1).astype("int32")
MEMORY = random(32, 5, 8, seed=1)


def classifier(dropout=0.0):
    """Says of a sentence which of two kinds it is of."""
    symbols = keras.Input((None,), dtype="int32")
    x = layers.TokenEmbedding(10, 8, mask_zero=True, name="embedding")(symbols)
    x = layers.PositionalEncoding()(x)
    x = layers.EncoderLayer(**SIZES, dropout=dropout, name="encoder_layer")(x)
    x = keras.layers.GlobalAveragePooling1D()(x)
    return keras.Model(symbols, keras.layers.Dense(2, name="kinds")(x))


def compiled(model, learning_rate=0.02, jit_compile=False):
    model.compile(
        keras.optimizers.Adam(learning_rate),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        jit_compile=jit_compile,
    )
    return model


def two_inputs():
    """A decoder over vectors of its own and of another sequence."""
    x, memory = keras.Input((None, 8)), keras.Input((None, 8))
    y = layers.DecoderLayer(**SIZES)(x, memory)
    return keras.Model([x, memory], keras.layers.Dense(1)(y))


class Tagger(keras.Model):
    """A model of a user's own, with layers among its attributes."""

    def __init__(self):
        super().__init__()
        self.embedding = layers.TokenEmbedding(10, 8)
        self.encoder = layers.Encoder(2, **SIZES, dropout=0.1)

    def call(self, ids, training=None):
        mask = layers.padding_mask(ids)
        x = self.encoder(self.embedding(ids), attention_mask=mask, training=training)
        return self.embedding(x, reverse=True)


@pytest.mark.parametrize(
    "jit_compile", [False, pytest.param("auto", marks=pytest.mark.medium)]
)
def test_a_functional_classifier_learns(jit_compile):
    keras.utils.set_random_seed(1)
    model = compiled(classifier(), jit_compile=jit_compile)
    history = model.fit(IDS, LABELS, epochs=20, verbose=0).history
    assert history["loss"][-1] < 0.5 * history["loss"][0]
    assert history["accuracy"][-1] > 0.9


def test_a_functional_model_of_two_inputs_learns():
    keras.utils.set_random_seed(1)
    model = two_inputs()
    model.compile("adam", "mse", jit_compile=False)
    x, y = [random(32, 3, 8), MEMORY], random(32, 3, 1, seed=2)
    losses = model.fit(x, y, epochs=4, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    assert model.predict(x, verbose=0).shape == (32, 3, 1)


def test_layers_follow_each_other_in_a_sequential_model():
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
    losses = compiled(model).fit(IDS, LABELS, epochs=3, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    assert model.predict(IDS, verbose=0).shape == (32, 2)


def test_a_table_embeds_symbols_and_makes_logits_of_vectors():
    symbols = keras.Input((None,), dtype="int32")
    table = layers.TokenEmbedding(10, 8)
    model = keras.Model(symbols, table(table(symbols), reverse=True))
    assert len(model.trainable_weights) == 1
    rows = table.table.numpy()
    expected = rows[IDS] * (IDS != 0)[..., None] * 8**0.5 @ rows.T
    np.testing.assert_allclose(model(IDS), expected, rtol=1e-5, atol=1e-5)


def test_a_model_of_a_users_own_learns():
    keras.utils.set_random_seed(1)
    model = compiled(Tagger())
    losses = model.fit(IDS, IDS, epochs=4, verbose=0).history["loss"]
    assert losses[-1] < losses[0]


def test_layers_work_inside_a_layer_of_a_users_own():
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
    # Four projections; two kernels with their biases.
    assert len(block.trainable_weights) == 8
    assert {w.path.split("/")[0] for w in block.weights} == {"block"}


def test_only_what_is_not_frozen_learns():
    model = classifier()
    model.get_layer("encoder_layer").trainable = False
    before = {w.path: w.numpy() for w in model.weights}
    compiled(model).fit(IDS, LABELS, verbose=0)
    changed = {p for w in model.weights if (before[p := w.path] != w.numpy()).any()}
    assert changed == {"embedding/table", "kinds/kernel", "kinds/bias"}


def test_evaluation_is_the_mean_of_the_losses():
    model = compiled(classifier())
    logits = np.array(model(IDS), "float64")
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    loss, accuracy = model.evaluate(IDS, LABELS, verbose=0)
    expected = -np.log(probs[np.arange(32), LABELS]).mean()
    assert loss == pytest.approx(expected, rel=1e-5)
    assert accuracy == pytest.approx((probs.argmax(axis=1) == LABELS).mean())


def test_prediction_drops_nothing():
    model = classifier(dropout=0.5)
    np.testing.assert_allclose(
        model.predict(IDS, verbose=0, batch_size=32), model(IDS), atol=1e-6
    )


def test_a_step_of_ones_own_with_a_gradient_tape():
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


def test_a_generators_masks_differ_from_step_to_step_and_return_with_its_state():
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


def test_a_seed_of_ones_own_makes_a_steps_masks_a_function_of_it():
    model = classifier(dropout=0.5)

    @tf.function
    def outputs(seed):
        with layers.dropout_seed(seed):
            return model(IDS, training=True)

    one, same, other = (np.array(outputs(tf.constant([1, n]))) for n in (2, 2, 3))
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 1e-3


@pytest.mark.parametrize("policy", sixteen_bits.both("mixed_"))
def test_a_model_learns_in_mixed_precision(policy):
    keras.utils.set_random_seed(1)
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        model = compiled(classifier())
    finally:
        keras.config.set_dtype_policy(before)
    assert model(IDS).dtype == policy.removeprefix("mixed_")
    losses = model.fit(IDS, LABELS, epochs=6, verbose=0).history["loss"]
    assert losses[-1] < 0.8 * losses[0]


# Saving


MODELS = {
    "classifier": (classifier, IDS),
    "two_inputs": (two_inputs, [random(32, 3, 8), MEMORY]),
}
EITHER_MODEL = pytest.mark.parametrize("kind", MODELS)


@EITHER_MODEL
def test_a_saved_model_is_read_again_and_computes_the_same(kind, tmp_path):
    make, inputs = MODELS[kind]
    model = make()
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again(inputs), model(inputs))


def test_a_saved_model_goes_on_learning_where_it_was(tmp_path):
    model = compiled(classifier())
    model.fit(IDS, LABELS, verbose=0, shuffle=False)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    one, two = (
        m.fit(IDS, LABELS, epochs=2, verbose=0, shuffle=False).history["loss"]
        for m in (model, again)
    )
    np.testing.assert_allclose(one, two, rtol=1e-6)


@pytest.mark.parametrize("name", [n for n in CASES if "Residual" not in n])
def test_a_model_of_each_layer_is_saved_and_read_again(name, tmp_path):
    case = CASES[name]
    symbols = [
        keras.Input((None, *each.shape[2:]), dtype=str(each.dtype))
        for each in case.inputs
    ]
    model = keras.Model(symbols, case.make(name="layer")(*symbols))
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert (
        again.get_layer("layer").get_config() == model.get_layer("layer").get_config()
    )
    np.testing.assert_array_equal(again(case.inputs), model(case.inputs))


def test_a_mask_that_is_computed_in_a_model_is_saved_with_it(tmp_path):
    symbols = keras.Input((None,), dtype="int32")
    x = layers.TokenEmbedding(10, 8)(symbols)
    mask = layers.padding_mask(symbols)
    model = keras.Model(symbols, layers.EncoderLayer(**SIZES)(x, attention_mask=mask))
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again(IDS), model(IDS))


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))]
)
def test_a_model_is_copied(copied):
    model = classifier()
    np.testing.assert_array_equal(copied(model)(IDS), model(IDS))


@EITHER_MODEL
def test_saved_weights_are_read_into_a_fresh_model(kind, tmp_path):
    make, inputs = MODELS[kind]
    model, fresh = make(), make()
    assert np.abs(np.array(fresh(inputs)) - np.array(model(inputs))).max() > 1e-3
    model.save_weights(tmp_path / "model.weights.h5")
    fresh.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_array_equal(fresh(inputs), model(inputs))


@EITHER_MODEL
def test_a_model_is_cloned(kind):
    make, inputs = MODELS[kind]
    model = make()
    clone = keras.models.clone_model(model)
    assert [w.shape for w in clone.weights] == [w.shape for w in model.weights]
    clone.set_weights(model.get_weights())
    np.testing.assert_array_equal(clone(inputs), model(inputs))


@EITHER_MODEL
def test_a_config_makes_the_model_again(kind):
    make, inputs = MODELS[kind]
    model = make()
    again = type(model).from_config(model.get_config())
    again.set_weights(model.get_weights())
    np.testing.assert_array_equal(again(inputs), model(inputs))


@pytest.mark.parametrize("make", [classifier, Tagger])
def test_a_checkpoint_of_tensorflow_holds_every_weight(make, tmp_path):
    model, fresh = make(), make()
    expected = model(IDS)
    path = tf.train.Checkpoint(model).save(str(tmp_path / "checkpoint"))
    fresh(IDS)
    tf.train.Checkpoint(fresh).restore(path).assert_existing_objects_matched()
    for one, other in zip(model.weights, fresh.weights, strict=True):
        np.testing.assert_array_equal(one, other, one.path)
    np.testing.assert_array_equal(fresh(IDS), expected)


@pytest.mark.parametrize("make", [classifier, Tagger])
def test_a_model_is_exported_and_served_without_its_python(make, tmp_path):
    model = make()
    expected = model(IDS)
    given = [keras.InputSpec("int32", (None, None))]
    model.export(tmp_path / "export", verbose=False, input_signature=given)
    served = tf.saved_model.load(tmp_path / "export")
    np.testing.assert_allclose(served.serve(tf.constant(IDS)), expected, atol=1e-6)
    longer = tf.constant(np.pad(IDS, ((0, 0), (0, 3))))
    np.testing.assert_allclose(served.serve(longer), model(longer), atol=1e-6)


def test_a_summary_lists_every_layer_with_its_shape(capsys):
    model = classifier()
    model.summary()
    text = capsys.readouterr().out
    for layer in ("embedding", "encoder_layer", "kinds"):
        assert layer in text
    assert "(None, None, 8)" in text
    assert f"{model.count_params():,}" in text
