"""Decoder that computes one step at a time, with a KV cache."""

from typing import NamedTuple

import tensorflow as tf

from t2t_repro.layers.stacks import DecoderLayer
from t2t_repro.models.transformer import Transformer


class LayerCache(NamedTuple):
    """Keys and values of one decoder layer.

    Attributes:
        self_keys: float (batch, beam, heads, steps, d_k).
        self_values: float (batch, beam, heads, steps, d_v).
        cross_keys: float (batch, heads, source, d_k), shared by all hypotheses.
        cross_values: float (batch, heads, source, d_v).
    """

    self_keys: tf.Tensor
    self_values: tf.Tensor
    cross_keys: tf.Tensor
    cross_values: tf.Tensor


class DecodingState(NamedTuple):
    """Decoder state of a batch of sentences.

    Attributes:
        layers: One cache per decoder layer.
        mask: bool (batch, 1, 1, source), true at visible source positions.
    """

    layers: tuple[LayerCache, ...]
    mask: tf.Tensor


class CachedDecoder:
    """Decoder that returns the logits of the next token and a state.

    It implements `t2t_repro.decoding.decoder.StepwiseDecoder`.

    Args:
        model: Built model.
        beam_size: Number of hypotheses per sentence.
    """

    def __init__(self, model: Transformer, beam_size: int) -> None:
        self.model = model
        self.beam_size = beam_size
        self.vocab_size = model.vocab_size

    def start(self, inputs: tf.Tensor) -> DecodingState:
        """Runs the encoder and projects its output for every decoder layer.

        Args:
            inputs: int32 (batch, source), ending in EOS, 0-padded.

        Returns:
            The state before the first step.
        """
        encoder_output, mask = self.model.encode(inputs)
        batch = tf.shape(inputs)[0]
        caches = []
        for layer in self.model.decoder.layers_in_order():
            keys, values = layer.cross_attention.project_memory(encoder_output)
            attention = layer.self_attention
            no_keys, no_values = (
                tf.zeros([batch, self.beam_size, attention.num_heads, 0, d], keys.dtype)
                for d in (attention.d_k, attention.d_v)
            )
            caches.append(LayerCache(no_keys, no_values, keys, values))
        return DecodingState(tuple(caches), mask[:, None])

    def step(
        self, ids: tf.Tensor, index: tf.Tensor, state: DecodingState
    ) -> tuple[tf.Tensor, DecodingState]:
        """Reads one token per hypothesis and computes the logits of the next.

        Args:
            ids: int32 (batch, beam), the last tokens; 0 at the first step.
            index: int32 (), step number, from 0.
            state: State from `start` or the previous step.

        Returns:
            The logits, float32 (batch, beam, V), and the new state.
        """
        ids = tf.ensure_shape(ids, [None, self.beam_size])
        x = self.model.step_input(ids, tf.reshape(index, [1]))
        caches = []
        layers = self.model.decoder.layers_in_order()
        for layer, cache in zip(layers, state.layers, strict=True):
            x, cache = self._layer_step(layer, x, cache, state.mask)
            caches.append(cache)
        logits = self.model.logits(self.model.decoder.finish(x))
        logits = tf.ensure_shape(logits, [None, self.beam_size, None])
        return tf.cast(logits, tf.float32), state._replace(layers=tuple(caches))

    def _layer_step(
        self, layer: DecoderLayer, x: tf.Tensor, cache: LayerCache, mask: tf.Tensor
    ) -> tuple[tf.Tensor, LayerCache]:
        """Applies a layer to one token per hypothesis, (batch, beam, d_model)."""
        attention, cross = layer.self_attention, layer.cross_attention

        def self_attend(y: tf.Tensor) -> tf.Tensor:
            nonlocal cache
            # (batch, beam, d_model) -> (batch * beam, 1, d_model)
            tokens = tf.reshape(y, [-1, 1, y.shape[-1]])
            key, value = attention.project_memory(tokens)
            keys = _append_step(cache.self_keys, key, self.beam_size)
            values = _append_step(cache.self_values, value, self.beam_size)
            cache = cache._replace(self_keys=keys, self_values=values)
            output = attention.attend(
                attention.project_query(tokens),
                _flat(keys, key),
                _flat(values, value),
                None,
            )
            return tf.reshape(output, [-1, self.beam_size, y.shape[-1]])

        def cross_attend(y: tf.Tensor) -> tf.Tensor:
            # The hypotheses of a sentence take the place of target positions.
            query = cross.project_query(y)
            return cross.attend(query, cache.cross_keys, cache.cross_values, mask)

        x = layer.apply_sublayers(x, self_attend, cross_attend)
        return x, cache

    def select_beams(self, state: DecodingState, parents: tf.Tensor) -> DecodingState:
        """Gives hypothesis k the cache of ``parents[:, k]``, int32 (batch, beam)."""
        layers = tuple(
            cache._replace(
                self_keys=tf.gather(cache.self_keys, parents, batch_dims=1),
                self_values=tf.gather(cache.self_values, parents, batch_dims=1),
            )
            for cache in state.layers
        )
        return state._replace(layers=layers)

    def select_sentences(self, state: DecodingState, keep: tf.Tensor) -> DecodingState:
        """Selects the sentences in the given rows, int32 (selected,)."""
        return tf.nest.map_structure(lambda tensor: tf.gather(tensor, keep), state)


def _append_step(past: tf.Tensor, new: tf.Tensor, beam: int) -> tf.Tensor:
    """Appends (batch * beam, heads, 1, d) to (batch, beam, heads, steps, d)."""
    return tf.concat([past, tf.reshape(new, [-1, beam, *new.shape[1:]])], axis=3)


def _flat(past: tf.Tensor, new: tf.Tensor) -> tf.Tensor:
    """Reshapes (batch, beam, heads, steps, d) to (batch * beam, heads, steps, d).

    `past` is reshaped; `new`, (batch * beam, heads, 1, d), provides static sizes.
    """
    heads, depth = new.shape[1], new.shape[3]
    return tf.reshape(past, [-1, heads, tf.shape(past)[3], depth])
