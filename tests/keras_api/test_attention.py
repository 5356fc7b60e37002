"""`MultiHeadAttention` can replace `keras.layers.MultiHeadAttention`."""

import keras
import numpy as np
import pytest

from t2t_repro import layers
from tests.arrays import random

BATCH, TARGET, SOURCE, HEADS = 2, 3, 5, 2
X, MEMORY = random(BATCH, TARGET, 8), random(BATCH, SOURCE, 6, seed=1)
KEY = random(BATCH, SOURCE, 7, seed=2)


def both(query, value, key=None, **sizes):
    """Creates our attention and Keras', with the same weights."""
    width = query.shape[-1]
    sizes = {"d_k": 4, "d_v": 5} | sizes
    ours = layers.MultiHeadAttention(HEADS, **sizes)
    ours.build(*(each.shape for each in (query, value, key) if each is not None))
    theirs = keras.layers.MultiHeadAttention(
        HEADS,
        key_dim=sizes["d_k"],
        value_dim=sizes["d_v"],
        use_bias=False,
        output_shape=sizes.get("d_model", width),
    )
    theirs.build(query.shape, value.shape, None if key is None else key.shape)
    names = [weight.path.split("/")[-2] for weight in theirs.weights]
    assert names == ["query", "key", "value", "attention_output"]
    parts = [ours.query, ours.key, ours.value, ours.output_projection]
    for part, weight in zip(parts, theirs.weights, strict=True):
        weight.assign(part.kernel.numpy().reshape(weight.shape))
    return ours, theirs


def assert_equal(pair, *inputs, **options):
    """Asserts that both layers return the same outputs and scores."""
    options["return_attention_scores"] = True
    (output, scores), expected = (layer(*inputs, **options) for layer in pair)
    np.testing.assert_allclose(output, expected[0], atol=2e-6)
    np.testing.assert_allclose(scores, expected[1], atol=1e-6)


def mask(*shape):
    """Returns a random mask in which the first key is visible to every query."""
    visible = np.random.default_rng(7).random(shape) < 0.6
    visible[..., 0] = True
    return visible


def test_self_attention_equals_keras():
    assert_equal(both(X, X), X, X)


def test_cross_attention_equals_keras():
    assert_equal(both(X, MEMORY), X, MEMORY)


def test_attention_with_a_separate_key_equals_keras():
    assert_equal(both(X, MEMORY, KEY), X, MEMORY, KEY)


def test_arguments_have_the_names_of_keras():
    assert_equal(both(X, MEMORY, KEY), query=X, value=MEMORY, key=KEY)


@pytest.mark.parametrize(("d_k", "d_v"), [(4, 4), (6, 3), (1, 8)])
def test_attention_of_any_depth_equals_keras(d_k, d_v):
    assert_equal(both(X, MEMORY, d_k=d_k, d_v=d_v), X, MEMORY)


def test_attention_with_another_output_width_equals_keras():
    assert_equal(both(X, MEMORY, d_model=11), X, MEMORY)


@pytest.mark.parametrize(
    "shape",
    [
        (TARGET, SOURCE),
        (1, SOURCE),
        (BATCH, TARGET, SOURCE),
        (BATCH, 1, SOURCE),
        (1, TARGET, SOURCE),
        (BATCH, HEADS, TARGET, SOURCE),
        (BATCH, 1, 1, SOURCE),
    ],
)
def test_a_mask_of_any_rank_works_as_in_keras(shape):
    assert_equal(both(X, MEMORY), X, MEMORY, attention_mask=mask(*shape))


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_a_numeric_mask_works_as_in_keras(dtype):
    visible = mask(BATCH, TARGET, SOURCE).astype(dtype)
    assert_equal(both(X, MEMORY), X, MEMORY, attention_mask=visible)


def test_a_causal_mask_works_as_in_keras():
    assert_equal(both(X, X), X, X, use_causal_mask=True)


def test_a_causal_mask_combines_with_another_as_in_keras():
    visible = mask(BATCH, TARGET, TARGET)
    assert_equal(both(X, X), X, X, attention_mask=visible, use_causal_mask=True)


def test_masks_of_value_and_key_work_as_in_keras():
    masks = {"value_mask": mask(BATCH, SOURCE), "key_mask": mask(BATCH, SOURCE)[::-1]}
    assert_equal(both(X, MEMORY, KEY), X, MEMORY, KEY, **masks)


DROP_IN = {
    "RelativeAttention": lambda: layers.RelativeAttention(
        HEADS, 4, 4, max_relative_position=2
    ),
    "LocalAttention": lambda: layers.LocalAttention(HEADS, 4, 5, radius=1),
}


@pytest.mark.parametrize("name", DROP_IN)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_causal_mask": True},
        {"attention_mask": mask(TARGET, TARGET)},
        {"attention_mask": mask(BATCH, TARGET, TARGET)},
        {"attention_mask": mask(BATCH, HEADS, TARGET, TARGET)},
        {"attention_mask": mask(BATCH, 1, TARGET), "use_causal_mask": True},
    ],
)
def test_other_attention_layers_accept_the_same_arguments(name, options):
    attention = DROP_IN[name]()
    output, scores = attention(X, X, return_attention_scores=True, **options)
    assert output.shape == X.shape
    np.testing.assert_array_equal(output, attention(X, X, **options))
    np.testing.assert_allclose(
        np.sum(scores, axis=-1), np.ones((BATCH, HEADS, TARGET)), rtol=1e-6
    )
    if options.get("use_causal_mask"):
        assert not np.triu(scores, 1).any()


def test_a_radius_of_the_text_length_equals_full_attention():
    near = layers.LocalAttention(HEADS, 4, 5, radius=TARGET)
    whole, _ = both(X, X)
    near.build(X.shape, X.shape)
    near.set_weights(whole.get_weights())
    np.testing.assert_allclose(near(X, X), whole(X, X), atol=1e-6)


def test_layers_of_an_encoder_copy_another_self_attention():
    encoder = layers.Encoder(
        2,
        num_heads=2,
        d_k=4,
        d_v=4,
        d_ff=8,
        attention_dropout=0.3,
        attention_bias=True,
        self_attention=layers.RelativeAttention(2, 3, 5, max_relative_position=2),
    )
    encoder(X)
    copies = [layer.self_attention for layer in encoder.layers_in_order()]
    assert copies[0] is not copies[1]
    for number, attention in enumerate(copies):
        assert type(attention) is layers.RelativeAttention
        assert attention.max_relative_position == 2
        # The layer's own sizes take precedence over the stack's.
        assert (attention.d_k, attention.d_v, attention.dropout) == (3, 5, 0.0)
        path = f"{encoder.name}/layer_{number}/self_attention/query/kernel"
        assert attention.query.kernel.path == path


def encoder_layer(**options):
    """Returns an encoder layer with fixed sizes and weights."""
    layer = layers.EncoderLayer(
        HEADS, 4, 4, 8, attention_dropout=0.3, attention_bias=True, **options
    )
    layer.build(X.shape)
    rng = np.random.default_rng(1)
    layer.set_weights([rng.normal(size=w.shape) for w in layer.weights])
    return layer


def test_a_radius_equals_a_band_in_the_mask():
    distances = np.arange(TARGET)[:, None] - np.arange(TARGET)
    expected = encoder_layer()(X, attention_mask=np.abs(distances)[None] <= 1)
    output = encoder_layer(self_attention_radius=1)(X)
    np.testing.assert_allclose(output, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("numbers", "kind", "config"),
    [
        ({"self_attention_radius": 2}, "LocalAttention", {"radius": 2}),
        (
            {"max_relative_position": 3},
            "RelativeAttention",
            {"radius": 0, "max_relative_position": 3},
        ),
        (
            {"max_relative_position": 3, "self_attention_radius": 2},
            "RelativeAttention",
            {"radius": 2, "max_relative_position": 3},
        ),
    ],
)
def test_a_serialized_self_attention_without_sizes_equals_the_numbers(
    numbers, kind, config
):
    """Models of earlier versions have such a dictionary in their configuration."""
    serialized = {"class_name": f"t2t_repro>{kind}", "config": config}
    layer, former = encoder_layer(**numbers), encoder_layer(self_attention=serialized)
    for each in (layer, former):
        assert type(each.self_attention).__name__ == kind
    assert layer.self_attention.get_config() == former.self_attention.get_config()
    assert [w.path.partition("/")[2] for w in layer.weights] == [
        w.path.partition("/")[2] for w in former.weights
    ]
    np.testing.assert_array_equal(layer(X), former(X))


def test_the_numbers_do_not_change_cross_attention():
    layer = layers.DecoderLayer(2, 3, 3, 8, max_relative_position=2)
    assert type(layer.self_attention) is layers.RelativeAttention
    assert type(layer.cross_attention) is layers.MultiHeadAttention


def test_another_self_attention_and_a_number_are_rejected():
    nearby = layers.LocalAttention(2, 3, 3, radius=1)
    with pytest.raises(ValueError, match="set either it or these numbers"):
        layers.EncoderLayer(2, 3, 3, 8, self_attention=nearby, self_attention_radius=1)
