"""The loss in chunks equals the loss of all positions, and never holds all logits."""

import math
import re

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.fast import chunked_loss
from t2t_repro.fast.chunked_loss import loss_in_chunks
from t2t_repro.layers.embedding import TokenEmbedding
from t2t_repro.layers.label_smoothing import loss_of_output
from t2t_repro.models.precision import unsupported_reason
from t2t_repro.training.losses import LabelSmoothedCrossEntropy
from t2t_repro.training.step import TrainStep
from tests.training import toy

VOCAB_SIZE, CHANNELS = 50, 16
ROWS, LENGTH = 5, 9
LOSS = LabelSmoothedCrossEntropy(label_smoothing=0.1).sum_and_count
# 16 positions per chunk: the 45 positions and three of padding are three chunks.
CHUNK = 16 * VOCAB_SIZE
X = tf.TensorSpec([None, None, CHANNELS], tf.float32)
IDS = tf.TensorSpec([None, None], tf.int32)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(chunked_loss, "CHUNK", CHUNK)


def table_of(use_bias=False, dtype="float32"):
    table = TokenEmbedding(VOCAB_SIZE, CHANNELS, use_bias=use_bias, dtype=dtype)
    table.build()
    if use_bias:
        rng = np.random.default_rng(2)
        table.bias.assign(table.bias + rng.normal(size=VOCAB_SIZE))
    return table


def example(dtype="float32"):
    rng = np.random.default_rng(0)
    x = tf.constant(3 * rng.normal(size=(ROWS, LENGTH, CHANNELS)), dtype)
    targets = rng.integers(1, VOCAB_SIZE, [ROWS, LENGTH])
    targets[np.arange(LENGTH) > rng.integers(1, LENGTH, [ROWS, 1])] = 0
    targets[3] = 0  # A row of padding.
    return x, tf.constant(targets, tf.int32)


def results(function, table, loss, x, targets, factor=3.0, **options):
    """Returns the two sums, and the gradients of the first one times a factor."""
    weights = [weight.value for weight in table.weights]

    def compute(x, targets):
        with tf.GradientTape() as tape:
            tape.watch(x)
            total, tokens = function(table, x, targets, loss)
            scaled = factor * total
        return total, tokens, *tape.gradient(scaled, [x, *weights])

    # Training traces its graph with unknown shapes, too.
    signature = tf.TensorSpec([None, None, CHANNELS], x.dtype), IDS
    return tf.function(compute, signature, autograph=False, **options)(x, targets)


def distance(result, expected):
    """Returns the norm of the difference relative to that of the expected value."""
    wide, result = (tf.cast(each, tf.float64) for each in (expected, result))
    return float(tf.norm(result - wide) / tf.norm(wide))


@pytest.mark.parametrize(("form", "use_bias"), [("t2t", False), ("marian", True)])
def test_loss_and_gradients_equal_the_reference(form, use_bias):
    table = table_of(use_bias)
    loss = LabelSmoothedCrossEntropy(0.1, form, use_bias).sum_and_count
    arguments = table, loss, *example()
    expected = results(loss_of_output.reference, *arguments)
    for xla in (False, True):
        chunked = results(loss_in_chunks, *arguments, jit_compile=xla)
        assert float(chunked[1]) == np.count_nonzero(arguments[-1])
        for result, reference in zip(chunked, expected, strict=True):
            assert result.dtype == reference.dtype == tf.float32
            assert distance(result, reference) < 1e-6


def test_bfloat16_differs_from_float32_by_its_rounding():
    if reason := unsupported_reason("bfloat16"):
        pytest.skip(reason)
    table = table_of(dtype="mixed_bfloat16")
    loss = LOSS
    x, targets = example("bfloat16")
    exact = table_of()
    exact.table.assign(table.table)
    expected = results(
        loss_of_output.reference, exact, loss, tf.cast(x, tf.float32), targets
    )
    chunked = results(loss_in_chunks, table, loss, x, targets)
    assert [each.dtype for each in chunked[2:]] == [tf.bfloat16, tf.float32]
    for result, reference in zip(chunked, expected, strict=True):
        assert distance(result, reference) < 2**-7


@pytest.mark.parametrize(
    ("dtype", "chunk"), [("float32", ROWS * LENGTH * VOCAB_SIZE), ("float16", CHUNK)]
)
def test_one_chunk_and_float16_have_the_bits_of_the_reference(
    monkeypatch, dtype, chunk
):
    monkeypatch.setattr(chunked_loss, "CHUNK", chunk)
    table = table_of(dtype="mixed_float16" if dtype == "float16" else dtype)
    arguments = table, LOSS, *example(dtype)
    expected = results(loss_of_output.reference, *arguments, factor=1.0)
    chunked = results(loss_in_chunks, *arguments, factor=1.0)
    for result, reference in zip(chunked, expected, strict=True):
        np.testing.assert_array_equal(result, reference)


def largest_tensor(function):
    """Returns the number of elements of the largest tensor in XLA's program."""
    table, loss = table_of(), LOSS

    @tf.function(jit_compile=True, input_signature=[X, IDS])
    def compute(x, targets):
        with tf.GradientTape() as tape:
            tape.watch(x)
            total, _ = function(table, x, targets, loss)
        return tape.gradient(total, [x, table.table.value])

    program = compute.experimental_get_compiler_ir(*example())(stage="optimized_hlo")
    shapes = re.findall(r"\w\d+\[([\d,]+)\]", program)
    return max(math.prod(map(int, shape.split(","))) for shape in shapes)


def test_never_holds_the_logits_of_all_positions():
    assert largest_tensor(loss_of_output.reference) == ROWS * LENGTH * VOCAB_SIZE
    assert largest_tensor(loss_in_chunks) == CHUNK


@pytest.mark.medium
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {
            "share_embeddings": False,
            "softmax_bias": True,
            "label_smoothing_form": "marian",
            "norm": "pre",
        },
    ],
    ids=["one table", "separate tables"],
)
def test_training_step_equals_the_reference(fields):
    hparams = toy.HPARAMS.replace(**fields)
    model = toy.model(hparams)
    batch = toy.rectangle(0, rows=8)

    def loss_and_gradients():
        step = TrainStep(model, hparams, accumulate=False)
        seeds = tf.constant([[1, 2], [3, 4]])
        return tf.nest.flatten(step._differentiate(**batch, seed=seeds))

    expected = loss_and_gradients()
    loss_of_output.implementation = loss_in_chunks
    for result, reference in zip(loss_and_gradients(), expected, strict=True):
        assert distance(result, reference) < 1e-5
