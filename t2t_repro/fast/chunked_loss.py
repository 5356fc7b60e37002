"""Loss of the decoder's output in chunks of positions, which needs less memory.

The logits of all positions would be the largest tensors of a training step. The loss is
a sum over positions, so the gradients of a chunk depend on no other chunk, up to a
common factor. They are computed together with the loss of the chunk, and the backward
pass multiplies their sum by the factor. Logits are neither kept nor computed twice.
"""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf
from keras import ops

from t2t_repro.fast.flat_attention import flatten_tokens
from t2t_repro.fast.small_batch_matmul import is_plain
from t2t_repro.layers.embedding import TokenEmbedding
from t2t_repro.layers.label_smoothing import loss_of_output
from t2t_repro.system.gradients import custom_gradient

CHUNK = 2**26
"""Number of logits in a chunk. Every chunk reads and writes the gradient of the whole
table, so small chunks take more time, and large ones more memory."""

# Maps x and targets to the two sums of a loss and the gradients of the first sum with
# respect to x and the table's weights.
_Gradients = Callable[[tf.Tensor, tf.Tensor], list[tf.Tensor]]


def loss_in_chunks(
    table: TokenEmbedding,
    x: tf.Tensor,
    targets: tf.Tensor,
    loss: Callable[[tf.Tensor, tf.Tensor], tuple[tf.Tensor, tf.Tensor]],
) -> tuple[tf.Tensor, tf.Tensor]:
    """Replaces `label_smoothing.loss_of_output` on a GPU.

    If all logits fit into one chunk, the reference computes them. It also computes all
    batches in float16: there, the common factor is the loss scale, without which small
    gradients would underflow. So it does for a table that Keras has quantized or given
    LoRA factors.
    """
    if table.compute_dtype == "float16" or not is_plain(table):
        return loss_of_output.reference(table, x, targets, loss)
    largest = max(CHUNK // table.vocab_size, 1)

    @custom_gradient
    def sums(x: tf.Tensor, *weights: tf.Tensor) -> tuple[object, object]:
        def compute(x: tf.Tensor, targets: tf.Tensor) -> list[tf.Tensor]:
            scope = keras.StatelessScope(zip(table.weights, weights, strict=True))
            with tf.GradientTape() as tape, scope:
                tape.watch([x, *weights])
                total, count = loss_of_output.reference(table, x, targets, loss)
            return [total, count, *tape.gradient(total, [x, *weights])]

        total, count, *gradients = ops.cond(
            tf.size(targets) > largest,
            lambda: _compute_chunks(compute, x, targets, weights, largest),
            lambda: compute(x, targets),
        )

        def gradient(factor: tf.Tensor, _: tf.Tensor) -> list[tf.Tensor]:
            return [tf.cast(factor, each.dtype) * each for each in gradients]

        return (total, count), gradient

    return sums(x, *(ops.convert_to_tensor(each) for each in table.weights))


def _compute_chunks(
    compute: _Gradients,
    x: tf.Tensor,
    targets: tf.Tensor,
    weights: Sequence[tf.Tensor],
    largest: int,
) -> list[tf.Tensor]:
    """Returns the result of `compute`, called for about `largest` positions at a time.

    The chunks have equal lengths, multiples of eight. Padding adds nothing to the sums.
    """
    positions, width = tf.size(targets), x.shape[-1]
    chunks = (positions + largest - 1) // largest
    length = (positions + 8 * chunks - 1) // (8 * chunks) * 8
    padding = [0, chunks * length - positions]
    rows = tf.pad(flatten_tokens(x), [padding, [0, 0]])
    rows = tf.reshape(rows, [chunks, length, width])
    labels = tf.pad(tf.reshape(targets, [-1]), [padding])
    labels = tf.reshape(labels, [chunks, length])

    def add(i: tf.Tensor, by_rows: tf.TensorArray, *sums: tf.Tensor) -> tuple[Any, ...]:
        total, count, by_chunk, *by_weights = compute(rows[i], labels[i])
        more = total, count, *by_weights
        added = (a + b for a, b in zip(sums, more, strict=True))
        return i + 1, by_rows.write(i, by_chunk), *added

    zeros = [tf.constant(0.0)] * 2 + [tf.zeros_like(each) for each in weights]
    array = tf.TensorArray(x.dtype, chunks, element_shape=[None, width])
    _, by_rows, total, count, *by_weights = tf.while_loop(
        lambda i, *_: i < chunks, add, (0, array, *zeros), parallel_iterations=1
    )
    by_x = tf.reshape(by_rows.stack(), [-1, width])[:positions]
    return [total, count, tf.reshape(by_x, tf.shape(x)), *by_weights]
