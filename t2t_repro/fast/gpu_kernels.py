"""Attention, ReLU and random numbers that move fewer bytes under XLA on a GPU."""

import tensorflow as tf

from t2t_repro.fast.xla_kernels import barrier, barriers, is_xla_graph
from t2t_repro.layers import seeded_dropout
from t2t_repro.layers.attention import MASKED, MultiHeadAttention
from t2t_repro.layers.functional import Shape
from t2t_repro.system.gradients import custom_gradient


def attend_by_position(
    attention: MultiHeadAttention,
    x: tf.Tensor,
    memory: tf.Tensor,
    lengths: tuple[tf.Tensor, tf.Tensor],
    mask: tf.Tensor | None,
) -> tf.Tensor:
    """Replaces `flat_attention.attend` for tokens in the order of their positions.

    The first position of all rows comes first, then the second position of all rows,
    and so on. In this order, the matrices of all heads and rows start at multiples of
    d, so that one batched matmul reads or writes them in place. In the usual order, XLA
    copies all heads before and after attention.

    Args:
        attention: The layer.
        x: float (targets * batch, d_model).
        memory: float (sources * batch, d_model).
        lengths: Numbers of target and source positions, int32 () each.
        mask: bool, broadcast to (batch, heads, targets, sources), or None.

    Returns:
        float (targets * batch, d_model).
    """
    targets, sources = lengths

    def split(rows: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
        depth = rows.shape[-1] // attention.num_heads
        by_position = tf.reshape(rows, [length, -1, attention.num_heads, depth])
        return tf.transpose(by_position, [1, 2, 0, 3])

    query = split(attention.query(x), targets)
    key = split(attention.key(_prevent_merging(query, memory)), sources)
    value = split(attention.value(_prevent_merging(key, memory)), sources)
    logits = tf.matmul(query, key, transpose_b=True)
    weights = attention.drop(_scaled_softmax(logits, mask, attention.d_k**-0.5))
    heads = tf.transpose(tf.matmul(weights, value), [2, 0, 1, 3])
    rows = tf.reshape(heads, [-1, attention.num_heads * attention.d_v])
    return attention.output_projection(rows)


def _prevent_merging(earlier: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """Returns x; XLA does not merge its matmul with the one that computes `earlier`.

    The result of a merged matmul would be divided, which copies all heads.
    """

    @custom_gradient
    def separate(x: tf.Tensor) -> tuple[tf.Tensor, object]:
        return barriers(x, earlier)[0], lambda upstream: upstream

    return separate(x)


def _scaled_softmax(
    logits: tf.Tensor, mask: tf.Tensor | None, scale: float
) -> tf.Tensor:
    """Computes `attention.masked_softmax` of ``logits * scale``.

    The scale is applied here because scaling the queries would take another kernel.
    """

    @custom_gradient
    def softmax(logits: tf.Tensor) -> tuple[tf.Tensor, object]:
        wide = tf.cast(logits, tf.float32) * scale
        if mask is not None:
            wide = tf.where(mask, wide, wide + MASKED)
        weights = tf.cast(tf.nn.softmax(wide), logits.dtype)

        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            # Without the barrier, XLA would compute the weights again, from logits that
            # it keeps. Without the division, which corrects rounded weights, it would
            # not recognize a softmax, and would read both operands twice.
            kept = barrier(weights)
            wide = tf.cast(kept, tf.float32)
            wide /= tf.reduce_sum(wide, -1, keepdims=True)
            product = wide * tf.cast(upstream, tf.float32)
            mean = tf.reduce_sum(product, -1, keepdims=True)
            return tf.cast((product - wide * mean) * scale, logits.dtype)

        return weights, gradient

    return softmax(logits)


def relu(x: tf.Tensor) -> tf.Tensor:
    """Replaces the ReLU of feed-forward networks under XLA.

    The gradient depends on the result only.
    XLA simplifies the usual ``relu(x) > 0`` to ``x > 0``. Then it has to store x as
    well, and cannot compute the activation in the matmul that computes x.
    """
    if not is_xla_graph():
        return tf.nn.relu(x)

    @custom_gradient
    def activate(x: tf.Tensor) -> tuple[tf.Tensor, object]:
        y = tf.nn.relu(x)
        return y, lambda upstream: tf.where(y != 0, upstream, tf.zeros_like(y))

    return activate(x)


def uniform(shape: Shape, seed: tf.Tensor) -> tf.Tensor:
    """Replaces `seeded_dropout.uniform` under XLA; draws different numbers.

    A number is a hash of its index and the seed, so XLA computes it inside the kernel
    that compares it with the dropout rate. TensorFlow's generators store all numbers.

    References:
        Jarzynski and Olano, Hash Functions for GPU Rendering, 2020: pcg3d.
    """
    if not is_xla_graph():
        return seeded_dropout.uniform.reference(shape, seed)
    columns = shape[-1]
    # Without the barrier, TensorFlow stores an index below 10 MB in the program.
    rows = barrier(tf.range(tf.reduce_prod(shape) // columns))
    index = tf.reshape(rows[:, tf.newaxis] * columns + tf.range(columns), shape)
    x, y, z = (
        tf.cast(each, tf.uint32) * 1_664_525 + 1_013_904_223
        for each in (index, seed[0], seed[1])
    )
    x += y * z
    y += z * x
    z += x * y
    x, y, z = (
        tf.bitwise.bitwise_xor(each, _shift_right(each, 16)) for each in (x, y, z)
    )
    x += y * z
    return tf.cast(_shift_right(x, 8), tf.float32) * 2.0**-24  # float32 has 24 bits.


def _shift_right(x: tf.Tensor, bits: int) -> tf.Tensor:
    return tf.bitwise.right_shift(x, tf.constant(bits, x.dtype))
