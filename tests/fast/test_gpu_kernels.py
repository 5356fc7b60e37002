"""Forms for a GPU equal the reference and, for random numbers, the published hash.

`test_shared_trace` has attention by position.
"""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.fast import gpu_kernels
from t2t_repro.layers import feed_forward
from t2t_repro.layers.attention import masked_softmax


def value_and_gradient(function, x, upstream):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return y, tape.gradient(y, x, upstream)


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float32", 2e-6), ("bfloat16", 0.02)]
)
@pytest.mark.parametrize("masked", [False, True])
def test_scaled_softmax_equals_the_reference(dtype, tolerance, masked):
    rng = np.random.default_rng(0)
    logits, upstream = (tf.constant(rng.normal(size=(2, 3, 4, 5)), dtype) for _ in "xy")
    visible = rng.random((2, 1, 4, 5)) < 0.7
    visible[0, 0, 1] = False  # As at a position of padding.
    mask = tf.constant(visible) if masked else None
    compiled = tf.function(value_and_gradient, jit_compile=True)
    results = compiled(
        lambda x: gpu_kernels._scaled_softmax(x, mask, 0.5), logits, upstream
    )
    wide = (tf.cast(each, tf.float32) for each in (logits, upstream))
    expected = value_and_gradient(lambda x: masked_softmax(x * 0.5, mask), *wide)
    for result, reference in zip(results, expected, strict=True):
        assert result.dtype == dtype
        result = tf.cast(result, tf.float32)
        np.testing.assert_allclose(result, reference, atol=tolerance)


@pytest.mark.parametrize("xla", [False, True])
def test_relu_and_its_gradient_equal_the_reference(xla):
    x, upstream = tf.constant([-2.0, -0.0, 0.0, 3.0]), tf.constant([1.0, 2.0, 3.0, 4.0])
    compute = tf.function(value_and_gradient, jit_compile=xla)
    results = compute(gpu_kernels.relu, x, upstream)
    np.testing.assert_array_equal(results, [[0, 0, 0, 3], [0, 0, 0, 4]])
    expected = value_and_gradient(feed_forward.relu.reference, x, upstream)
    np.testing.assert_array_equal(results, expected)


def pcg3d(x, y, z):
    """The first of the three numbers of the paper's function."""
    x, y, z = (each * 1664525 + 1013904223 for each in (x, y, z))
    x += y * z
    y += z * x
    z += x * y
    x, y, z = (each % 2**32 ^ each % 2**32 >> 16 for each in (x, y, z))
    return (x + y * z) % 2**32


def test_random_numbers_are_the_highest_bits_of_the_hash():
    seed = [7, 2_000_000_011]
    draw = tf.function(gpu_kernels.uniform, jit_compile=True)
    numbers = draw((3, 4), tf.constant(seed))
    expected = [pcg3d(index, *seed) // 256 / 2**24 for index in range(12)]
    np.testing.assert_array_equal(tf.reshape(numbers, [-1]), expected)


def test_a_program_does_not_contain_the_indices_of_random_numbers():
    draw = tf.function(gpu_kernels.uniform, jit_compile=True)
    program = draw.experimental_get_compiler_ir((1000, 1000), tf.constant([7, 8]))
    assert len(program(stage="hlo_serialized")) < 100_000
