"""Models that a Keras user builds from the layers, trains and saves."""

import copy
import pickle

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_repro import layers
from tests import sixteen_bits
from tests.keras_api.every_layer import CASES, SIZES, random

# Keras triggers this NumPy 2 warning when it saves TensorFlow's variables.
pytestmark = pytest.mark.filterwarnings(
    "ignore:__array__ implementation doesn't accept a copy:DeprecationWarning"
)
IDS = np.random.default_rng(0).integers(0, 10, (32, 6)).astype("int32")
LABELS = (IDS == 3).any(axis=1).astype("int32")
MEMORY = random(32, 5, 8, seed=1)


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


@pytest.mark.filterwarnings("ignore:Layer InputLayer does not have a `quantize`")
def test_keras_quantization_is_refused():
    model = classifier()
    model(IDS)
    with pytest.raises(ValueError, match='precision="int8"'):
        model.quantize("int8")
    with pytest.raises(ValueError, match="FeedForward does not support quantize"):
        layers.FeedForward(d_ff=8, dtype="int8_from_float32")


def two_inputs():
    """Creates a model whose decoder reads vectors and attends to other vectors."""
    x, memory = keras.Input((None, 8)), keras.Input((None, 8))
    y = layers.DecoderLayer(**SIZES)(x, memory)
    return keras.Model([x, memory], keras.layers.Dense(1)(y))


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
@pytest.mark.parametrize("jit_compile", [False, "auto"])
def test_a_functional_classifier_learns(jit_compile):
    keras.utils.set_random_seed(1)
    model = compiled(classifier(), jit_compile=jit_compile)
    history = model.fit(IDS, LABELS, epochs=20, verbose=0).history
    assert history["loss"][-1] < 0.5 * history["loss"][0]
    assert history["accuracy"][-1] > 0.9


@pytest.mark.medium
def test_a_functional_model_of_two_inputs_learns():
    keras.utils.set_random_seed(1)
    model = two_inputs()
    model.compile("adam", "mse", run_eagerly=True)
    x, y = [random(32, 3, 8), MEMORY], random(32, 3, 1, seed=2)
    losses = model.fit(x, y, epochs=4, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    assert model.predict(x, verbose=0).shape == (32, 3, 1)


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


@pytest.mark.medium
def test_a_subclassed_model_learns():
    keras.utils.set_random_seed(1)
    model = compiled(Tagger(), run_eagerly=True)
    losses = model.fit(IDS, IDS, epochs=4, verbose=0).history["loss"]
    assert losses[-1] < losses[0]


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


def test_frozen_layers_do_not_learn():
    model = classifier()
    model.get_layer("encoder_layer").trainable = False
    before = {w.path: w.numpy() for w in model.weights}
    compiled(model, run_eagerly=True).fit(IDS, LABELS, verbose=0)
    changed = {p for w in model.weights if (before[p := w.path] != w.numpy()).any()}
    assert changed == {"embedding/table", "classes/kernel", "classes/bias"}


def test_evaluate_returns_the_mean_loss():
    model = compiled(classifier(), run_eagerly=True)
    logits = np.array(model(IDS), "float64")
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    loss, accuracy = model.evaluate(IDS, LABELS, verbose=0)
    expected = -np.log(probs[np.arange(32), LABELS]).mean()
    assert loss == pytest.approx(expected, rel=1e-5)
    assert accuracy == pytest.approx((probs.argmax(axis=1) == LABELS).mean())


def test_predict_drops_nothing():
    model = classifier(dropout=0.5)
    np.testing.assert_allclose(
        model.predict(IDS, verbose=0, batch_size=32), model(IDS), atol=1e-6
    )


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


def test_masks_depend_only_on_a_given_seed():
    model = classifier(dropout=0.5)

    @tf.function
    def outputs(seed):
        with layers.dropout_seed(seed):
            return model(IDS, training=True)

    one, same, other = (np.array(outputs(tf.constant([1, n]))) for n in (2, 2, 3))
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 1e-3


@pytest.mark.medium
@pytest.mark.parametrize("policy", sixteen_bits.both("mixed_"))
def test_a_model_learns_in_mixed_precision(policy):
    keras.utils.set_random_seed(1)
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        model = compiled(classifier(), run_eagerly=True)
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
def test_a_saved_model_loads_with_the_same_outputs(kind, tmp_path):
    make, inputs = MODELS[kind]
    model = make()
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again(inputs), model(inputs))


@pytest.mark.medium
def test_a_saved_model_resumes_training(tmp_path):
    model = compiled(classifier(), run_eagerly=True)
    model.fit(IDS, LABELS, verbose=0, shuffle=False)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    one, two = (
        m.fit(IDS, LABELS, epochs=2, verbose=0, shuffle=False).history["loss"]
        for m in (model, again)
    )
    np.testing.assert_allclose(one, two, rtol=1e-6)


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


@EITHER_MODEL
def test_saved_weights_load_into_a_new_model(kind, tmp_path):
    make, inputs = MODELS[kind]
    model, fresh = make(), make()
    assert np.abs(np.array(fresh(inputs)) - np.array(model(inputs))).max() > 1e-3
    model.save_weights(tmp_path / "model.weights.h5")
    fresh.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_array_equal(fresh(inputs), model(inputs))


@EITHER_MODEL
def test_a_model_can_be_cloned(kind):
    make, inputs = MODELS[kind]
    model = make()
    clone = keras.models.clone_model(model)
    assert [w.shape for w in clone.weights] == [w.shape for w in model.weights]
    clone.set_weights(model.get_weights())
    np.testing.assert_array_equal(clone(inputs), model(inputs))


@EITHER_MODEL
def test_a_model_can_be_recreated_from_its_config(kind):
    make, inputs = MODELS[kind]
    model = make()
    again = type(model).from_config(model.get_config())
    again.set_weights(model.get_weights())
    np.testing.assert_array_equal(again(inputs), model(inputs))


@pytest.mark.parametrize("make", [classifier, Tagger])
def test_a_tensorflow_checkpoint_contains_every_weight(make, tmp_path):
    model, fresh = make(), make()
    expected = model(IDS)
    path = tf.train.Checkpoint(model).save(str(tmp_path / "checkpoint"))
    fresh(IDS)
    tf.train.Checkpoint(fresh).restore(path).assert_existing_objects_matched()
    for one, other in zip(model.weights, fresh.weights, strict=True):
        np.testing.assert_array_equal(one, other, one.path)
    np.testing.assert_array_equal(fresh(IDS), expected)


@pytest.mark.medium
@pytest.mark.parametrize("make", [classifier, Tagger])
def test_an_exported_model_computes_the_same(make, tmp_path):
    model = make()
    expected = model(IDS)
    signature = [keras.InputSpec("int32", (None, None))]
    model.export(tmp_path / "export", verbose=False, input_signature=signature)
    served = tf.saved_model.load(tmp_path / "export")
    np.testing.assert_allclose(served.serve(tf.constant(IDS)), expected, atol=1e-6)
    longer = tf.constant(np.pad(IDS, ((0, 0), (0, 3))))
    np.testing.assert_allclose(served.serve(longer), model(longer), atol=1e-6)


def test_summary_lists_layers_and_shapes(capsys):
    model = classifier()
    model.summary()
    text = capsys.readouterr().out
    for layer in ("embedding", "encoder_layer", "classes"):
        assert layer in text
    assert "(None, None, 8)" in text
    assert f"{model.count_params():,}" in text
