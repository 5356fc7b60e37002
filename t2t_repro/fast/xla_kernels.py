"""Forms that XLA computes sooner on a CPU."""

import tensorflow as tf
from tensorflow.compiler.tf2xla.python import xla
from tensorflow.python.ops.control_flow_util import GraphOrParentsInXlaContext

from t2t_repro.fast import small_batch_matmul
from t2t_repro.layers import seeded_dropout
from t2t_repro.layers.functional import Shape


def in_xla() -> bool:
    """Whether XLA will compile what is traced now."""
    return bool(GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph()))


def matmul(x: tf.Tensor, matrix: tf.Tensor, transposed: bool = False) -> tf.Tensor:
    """Replaces `small_batch_matmul.matmul`, with an explicit matrix gradient.

    That gradient is a product whose left operand is transposed. XLA's library gathers
    such an operand element by element, and the product takes up to 1.7 times as long.
    """
    if not in_xla():
        return small_batch_matmul.matmul.reference(x, matrix, transposed)

    @tf.custom_gradient
    def multiplied(x: tf.Tensor, matrix: tf.Tensor) -> tuple[tf.Tensor, object]:
        def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            by_x = small_batch_matmul.matmul.reference(upstream, matrix, not transposed)
            sides = (upstream, x) if transposed else (x, upstream)
            return by_x, _across_rows(*sides)

        return small_batch_matmul.matmul.reference(x, matrix, transposed), gradient

    return multiplied(x, matrix)


def uniform(shape: Shape, seed: tf.Tensor) -> tf.Tensor:
    """Replaces `seeded_dropout.uniform`: other numbers, just as good.

    XLA draws TensorFlow's own (Philox) in 2.7 times TensorFlow's time, Threefry's in
    0.8 times. Outside XLA, TensorFlow has no Threefry.
    """
    if not in_xla():
        return seeded_dropout.uniform.reference(shape, seed)
    return tf.random.stateless_uniform(shape, seed, alg="threefry")


def _across_rows(left: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
    """Computes ``left^T right``: float (rows, a) and (rows, b) to (a, b).

    The narrower side is the one that is copied to be transposed.
    """
    if left.shape[1] <= right.shape[1]:
        return tf.matmul(_as_written(tf.transpose(left)), right)
    return tf.transpose(_as_written(tf.matmul(_as_written(tf.transpose(right)), left)))


def _as_written(x: tf.Tensor) -> tf.Tensor:
    """Keeps XLA from taking a transposition into a product, or out of it."""
    return xla.optimization_barrier(x)[0]
