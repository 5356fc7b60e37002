"""Optimized cached decoder.

It writes keys and values into a KV cache in place (`kv_cache`), uses a fused QKV
projection, and prepacks the weights of small matmuls (`small_batch_matmul`).
"""

import copy
from itertools import chain
from typing import Any, Self, TypeAlias

import tensorflow as tf
from keras import ops

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.decoding.decode_loop import BeamSearchResult
from t2t_repro.fast.absorbed_attention import biased_softmax
from t2t_repro.fast.flat_attention import (
    flatten_tokens,
    is_quantized,
    merge_heads,
    split_heads,
    width_independent_softmax,
)
from t2t_repro.fast.kv_cache import KVCacheSlots, KVCacheState, LayerKVCache
from t2t_repro.fast.quantization import MatmulGroup, layer_matmuls
from t2t_repro.fast.small_batch_matmul import (
    StepMatmuls,
    halve_weights,
    pad_weights,
    prepack,
)
from t2t_repro.fast.xla_kernels import matmul_transposed
from t2t_repro.layers.attention import MASKED, MultiHeadAttention
from t2t_repro.layers.relative import RelativeAttention
from t2t_repro.layers.stacks import DecoderLayer
from t2t_repro.models import generate
from t2t_repro.models.ensemble import EnsembleDecoder, ModelDecoder
from t2t_repro.models.transformer import Transformer

Memory: TypeAlias = tuple[list[tuple[tf.Tensor, tf.Tensor]], tf.Tensor]
"""Cross-attention's keys and values of each layer, and `KVCacheState.source_bias`."""


class KVCacheDecoder:
    """Replaces `CachedDecoder`, with different states and the same logits.

    Args:
        model: The model, already built.
        beam_size: Number of hypotheses per sentence.
        matmuls: Matmuls of a step; None: matmuls with the layers' own weights.
    """

    def __init__(
        self, model: Transformer, beam_size: int, matmuls: StepMatmuls | None = None
    ) -> None:
        self.model = model
        self._matmuls = matmuls or StepMatmuls()
        self._copies: list[tf.Tensor] | None = None
        self.beam_size = beam_size
        self.vocab_size = model.vocab_size
        attention = model.decoder.layer_0.self_attention
        self._slots = KVCacheSlots(
            beam_size,
            attention.num_heads,
            getattr(attention, "radius", 0),
            isinstance(attention, RelativeAttention),
        )

    def start(self, inputs: tf.Tensor) -> KVCacheState:
        """Returns the state before the first step.

        Args:
            inputs: int32 (batch, source), ending in EOS, 0-padded.
        """
        return self.initial_state(self.read(inputs))

    def read(self, inputs: tf.Tensor) -> Memory:
        """Runs the encoder, and projects its output for each layer."""
        encoder_output, mask = self.model.encode(inputs)
        bias = (1.0 - tf.cast(mask[:, None], tf.float32)) * MASKED
        # Repeated for each hypothesis: oneDNN would fuse the addition of a broadcast
        # bias with the matmul, which takes twice as long for such small matrices.
        bias = tf.repeat(bias, self.beam_size, axis=2)
        layers = self.model.decoder.layers_in_order()
        attentions = [layer.cross_attention for layer in layers]
        return [each.project_memory(encoder_output) for each in attentions], bias

    def initial_state(self, memory: Memory) -> KVCacheState:
        """Returns the state before the first step, from the result of `read`."""
        layers, bias = memory
        batch, slots = tf.shape(bias)[0], len(self._slots.first_steps)
        caches = []
        for layer, cross in zip(
            self.model.decoder.layers_in_order(), layers, strict=True
        ):
            attention = layer.self_attention
            no_keys, no_values = (
                tf.zeros([batch, attention.num_heads, slots, d], cross[0].dtype)
                for d in (attention.d_k, attention.d_v)
            )
            caches.append(LayerKVCache(no_keys, no_values, *cross))
        return self._slots.initial_state(tuple(caches), bias)

    def prepack(self, sentences: tf.Tensor) -> Self:
        """Returns a copy of the decoder with prepacked weights for one search.

        Args:
            sentences: int32 (), the largest number of sentences in a step.
        """
        groups, dtype = matmuls_of_a_step(self.model), self.model.compute_dtype
        decoder, copies = copy.copy(self), self._copies
        if copies is not None and not copies:
            decoder._matmuls = halve_weights(groups, dtype)
        else:
            rows = sentences * self.beam_size
            decoder._matmuls = prepack(groups, rows, dtype, copies or ())
        return decoder

    def copies(self, sentences: int) -> list[tf.Tensor]:
        """Returns the copies that `prepack` makes, for several searches."""
        rows, dtype = sentences * self.beam_size, self.model.compute_dtype
        return pad_weights(matmuls_of_a_step(self.model), rows, dtype)

    def use_copies(self, copies: list[tf.Tensor]) -> Self:
        """Returns a decoder whose `prepack` uses given copies.

        Without any, it divides the weights in halves, for few rows only.
        """
        decoder = copy.copy(self)
        decoder._copies = copies
        return decoder

    def step(
        self, ids: tf.Tensor, index: tf.Tensor, state: KVCacheState
    ) -> tuple[tf.Tensor, KVCacheState]:
        """Computes the logits after one more token per hypothesis.

        Arguments and results are those of `StepwiseDecoder.step`.
        """
        state, position = self._slots.begin_step(state, index)
        distances = self._slots.distances(state, index)
        ids = tf.ensure_shape(ids, [None, self.beam_size])
        # (batch, beam, d_model) -> (batch * beam, d_model)
        x = flatten_tokens(self.model.step_input(ids, tf.reshape(index, [1])))
        caches = []
        layers = self.model.decoder.layers_in_order()
        for layer, cache in zip(layers, state.layers, strict=True):
            x, cache = self._layer_step(layer, x, cache, state, position, distances)
            caches.append(cache)
        x = self.model.decoder.finish(x)
        logits = self._matmuls.logits(x, self.model.softmax_table)
        # (batch * beam, V) -> (batch, beam, V)
        logits = tf.reshape(logits, [-1, self.beam_size, logits.shape[-1]])
        return tf.cast(logits, tf.float32), state._replace(layers=tuple(caches))

    def _layer_step(
        self,
        layer: DecoderLayer,
        x: tf.Tensor,
        cache: LayerKVCache,
        state: KVCacheState,
        position: tf.Tensor,
        distances: tf.Tensor | None,
    ) -> tuple[tf.Tensor, LayerKVCache]:
        """Applies a layer to one token of each hypothesis, (batch * beam, d_model)."""
        attention, slots = layer.self_attention, self._slots
        bias = state.self_bias[:, None]

        def self_attend(y: tf.Tensor) -> tf.Tensor:
            nonlocal cache
            query, keys, values = self._project_qkv(attention, y)
            keys = slots.write_keys(cache.self_keys, keys, position)
            values = slots.write(cache.self_values, values, position)
            cache = cache._replace(self_keys=keys, self_values=values)
            return self._attend(attention, query, keys, values, bias, distances)

        def cross_attend(y: tf.Tensor) -> tf.Tensor:
            return self._cross_attend(
                layer.cross_attention, y, cache, state.source_bias
            )

        def feed_forward(y: tf.Tensor) -> tf.Tensor:
            return self._matmuls.feed_forward(layer.feed_forward, y)

        x = layer.apply_sublayers(x, self_attend, cross_attend, feed_forward)
        return x, cache

    def _cross_attend(
        self,
        attention: MultiHeadAttention,
        y: tf.Tensor,
        cache: LayerKVCache,
        bias: tf.Tensor,
    ) -> tf.Tensor:
        """Computes cross-attention: float (batch * beam, d_model) to the same shape."""
        query = self._matmuls(y, attention.query) * attention.d_k**-0.5
        query = split_heads(attention, query, self.beam_size)
        keys, values = cache.cross_keys, cache.cross_values
        return self._attend(attention, query, keys, values, bias)

    def _project_qkv(
        self, attention: MultiHeadAttention, x: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Computes the fused QKV projection of self-attention.

        Args:
            attention: The layer with the projections.
            x: float (batch * beam, d_model).

        Returns:
            Queries, float (batch, heads, beam, d_k), multiplied by d_k^-0.5; keys,
            float (batch, heads, beam, d_k); values, float (batch, heads, beam, d_v).
        """
        qkv = self._matmuls(x, attention.query, attention.key, attention.value)
        heads, d_k, length = attention.num_heads, attention.d_k, self.beam_size
        if d_k == attention.d_v:
            split = ops.reshape(qkv, (-1, length, 3, heads, d_k))
            query, key, value = ops.unstack(ops.transpose(split, (2, 0, 3, 1, 4)), 3)
        else:
            ends = [heads * d_k, 2 * heads * d_k]
            query, key, value = (
                split_heads(attention, rows, length) for rows in ops.split(qkv, ends, 1)
            )
        return query * d_k**-0.5, key, value

    def _attend(
        self,
        attention: MultiHeadAttention,
        query: tf.Tensor,
        keys: tf.Tensor,
        values: tf.Tensor,
        bias: tf.Tensor,
        distances: tf.Tensor | None = None,
    ) -> tf.Tensor:
        """Computes attention with a bias on the logits: float (batch * beam, d_model).

        The output projection is included. Relative attention needs `distances`.
        """
        if isinstance(attention, RelativeAttention):
            visible = tf.equal(bias, 0.0)
            weights = attention.attention_weights(query, keys, visible, distances)
            heads = attention.weighted_sum(weights, values, distances)
        else:
            logits = self._logits(query, keys)
            if is_quantized(attention):
                weights = width_independent_softmax(logits + bias)
            else:
                weights = biased_softmax(logits, bias)
            heads = ops.matmul(weights, values)
        rows = merge_heads(attention, heads)
        return self._matmuls(rows, attention.output_projection)

    def _logits(self, query: tf.Tensor, keys: tf.Tensor) -> tf.Tensor:
        """Multiplies queries by keys: float (batch, heads, beam, slots)."""
        return matmul_transposed(query, keys)

    def select_beams(self, state: KVCacheState, parents: tf.Tensor) -> KVCacheState:
        """Lets hypothesis k continue hypothesis ``parents[:, k]``.

        Only the bias is reordered, not the cache. `parents` is int32 (batch, beam).
        """
        self_bias = tf.gather(state.self_bias, parents, batch_dims=1)
        return state._replace(self_bias=self_bias)

    def select_sentences(self, state: KVCacheState, keep: tf.Tensor) -> KVCacheState:
        """Keeps the sentences with the indices `keep`, int32 (kept,)."""
        return tf.nest.map_structure(lambda tensor: tf.gather(tensor, keep), state)


def generate_prepacked(
    search: DecodingConfig,
    decoder: ModelDecoder,
    inputs: tf.Tensor,
    *args: Any,
    **kwargs: Any,
) -> BeamSearchResult:
    """Replaces `generate.generate`; prepacks the decoders' weights first."""
    sentences = tf.shape(inputs)[0]
    prepacked = [
        each.prepack(sentences) if isinstance(each, KVCacheDecoder) else each
        for each in list_members(decoder)
    ]
    decoder = generate.combine_decoders(prepacked)
    return generate.generate.reference(search, decoder, inputs, *args, **kwargs)


def list_members(decoder: ModelDecoder) -> tuple[ModelDecoder, ...]:
    """Returns the decoders of an ensemble, or the only decoder."""
    return decoder.decoders if isinstance(decoder, EnsembleDecoder) else (decoder,)


def matmuls_of_a_step(model: Transformer) -> list[MatmulGroup]:
    """Returns the layers of each matmul of a step."""
    layers = model.decoder.layers_in_order()
    return [*chain.from_iterable(map(layer_matmuls, layers)), (model.softmax_table,)]
