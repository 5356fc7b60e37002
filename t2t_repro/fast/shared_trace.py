"""Traces the layers of a stack as one function."""

from collections.abc import Sequence
from contextlib import nullcontext
from itertools import chain

import keras
import tensorflow as tf
from keras import ops

from t2t_repro.fast.flat_attention import attend, flatten_tokens, unflatten_tokens
from t2t_repro.fast.gpu_kernels import attend_by_position
from t2t_repro.fast.small_batch_matmul import is_plain
from t2t_repro.fast.xla_kernels import is_xla_graph
from t2t_repro.layers.attention import MultiHeadAttention
from t2t_repro.layers.dense import Dense
from t2t_repro.layers.functional import Tensor, apply_layers
from t2t_repro.layers.masks import causal_mask, combine_masks
from t2t_repro.layers.seeded_dropout import (
    combine_seed,
    current_seed,
    dropout_seed,
    hash_path,
)
from t2t_repro.layers.stacks import DecoderLayer, EncoderLayer


def apply_layers_by_position(
    layers: Sequence[keras.layers.Layer], x: Tensor, *context: Tensor | None
) -> Tensor:
    """Replaces `functional.apply_layers` on a GPU; see `attend_by_position`."""
    return apply_layers_once_traced(layers, x, *context, on_gpu=True)


def apply_layers_once_traced(
    layers: Sequence[keras.layers.Layer],
    x: Tensor,
    *context: Tensor | None,
    on_gpu: bool = False,
) -> Tensor:
    """Replaces `functional.apply_layers` inside a TensorFlow graph.

    Python builds a graph operation by operation, so the time to trace equal layers
    grows with their number. This function traces only the first layer, and calls the
    trace with the weights of each layer. TensorFlow inlines the calls before it
    optimizes the graph, so steps are equally fast.

    The reference runs instead if layers draw dropout masks without a seed, or if an
    input carries a Keras mask: a shared trace would lose both.

    With `on_gpu`, layers compiled by XLA get tokens in the order of their positions.

    Two kinds of layers are called separately, on flattened tokens. Layers with int8
    matrices or LoRA factors may differ in their variables. Layers compiled by XLA would
    be compiled again at every call, because the function passes shapes to its gradient,
    so that XLA treats all its arguments as constants, weights included.
    """
    first, seed = layers[0], current_seed()
    masked = any(hasattr(each, "_keras_mask") for each in (x, *context))
    ours = type(first) in (EncoderLayer, DecoderLayer)
    unfit = masked or not ours or not tf.inside_function()
    if unfit or (seed is None and _InTraining(name="in_training")(x)):
        return apply_layers.reference(layers, x, *context)
    attention, xla = first.self_attention, is_xla_graph()
    # float16 could not represent large logits before they are scaled.
    fits = type(attention) is MultiHeadAttention and x.dtype != tf.float16
    by_position = on_gpu and xla and fits
    on_rows = _OnRows(by_position, x, *context)
    x = on_rows.swap_axes(x)
    rows = flatten_tokens(x)
    inner = chain.from_iterable(layer._flatten_layers() for layer in layers)
    if xla or not all(is_plain(each) for each in inner if isinstance(each, Dense)):
        for layer in layers:
            rows = on_rows(layer, rows)
        return on_rows.swap_axes(unflatten_tokens(x, rows))

    @tf.function(autograph=False)
    def apply(rows: Tensor, weights: list[Tensor], seed: Tensor | None) -> Tensor:
        seeded = nullcontext() if seed is None else dropout_seed(seed)
        with keras.StatelessScope(zip(first.weights, weights, strict=True)), seeded:
            return on_rows(first, rows)

    # A layer's seed depends on its path. Replacing the first layer's path by that of
    # each layer gives the same dropout masks as separate calls.
    salt = hash_path(first.path)
    for layer in layers:
        weights = [ops.cast(v, v.dtype) for v in layer.weights]
        own = seed
        if seed is not None and layer is not first:
            own = combine_seed(seed, salt ^ hash_path(layer.path))
        rows = apply(rows, weights, own)
    return unflatten_tokens(x, rows)


class _InTraining(keras.layers.Layer):
    """Tells whether it is called in training; Keras informs only layers of it."""

    def call(self, x: Tensor, training: bool | None = None) -> bool:
        """Returns the argument that Keras passes on from the outermost layer."""
        return bool(training)


class _OnRows:
    """Applies a layer to flattened tokens; takes the call arguments of a stack."""

    def __init__(self, by_position: bool, x: Tensor, *context: Tensor | None) -> None:
        # (attention_mask,) or (encoder_output, attention_mask, cross_attention_mask).
        both_sides = context if len(context) == 3 else (None, *context, None)
        encoder_output, attention_mask, cross_attention_mask = both_sides
        self.by_position = by_position
        self.attend = attend_by_position if by_position else attend
        self.length = tf.shape(x)[1]
        self.mask = _add_head_axis(attention_mask)
        if encoder_output is not None:
            self.mask = combine_masks(self.mask, causal_mask(self.length)[None])
            self.memory = flatten_tokens(self.swap_axes(encoder_output))
            self.source = tf.shape(encoder_output)[1]
            self.cross_mask = _add_head_axis(cross_attention_mask)

    def swap_axes(self, x: Tensor) -> Tensor:
        """Exchanges the first two axes if tokens are ordered by position."""
        return tf.transpose(x, [1, 0, 2]) if self.by_position else x

    def __call__(self, layer: keras.layers.Layer, rows: Tensor) -> Tensor:
        """Applies the layer to flattened tokens, float (tokens, d_model)."""

        def self_attend(y: Tensor) -> Tensor:
            lengths = (self.length, self.length)
            return self.attend(layer.self_attention, y, y, lengths, self.mask)

        def cross_attend(y: Tensor) -> Tensor:
            attention, mask = layer.cross_attention, self.cross_mask
            lengths = (self.length, self.source)
            return self.attend(attention, y, self.memory, lengths, mask)

        if isinstance(layer, EncoderLayer):
            return layer.apply_sublayers(rows, self_attend)
        return layer.apply_sublayers(rows, self_attend, cross_attend)


def _add_head_axis(mask: Tensor | None) -> Tensor | None:
    """Adds an axis for the heads to a mask of rank 3."""
    if mask is None or len(mask.shape) != 3:
        return mask
    return ops.expand_dims(mask, 1)
