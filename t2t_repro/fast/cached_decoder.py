"""The decoder one step at a time, with as little work for each as is known.

Keys and values stay where they were written (`columns`), queries, keys and values of a
step are one product, and products of few rows are prepacked (`small_batch_matmul`).
"""

import contextlib
from contextlib import AbstractContextManager

import keras
import tensorflow as tf
from keras import ops

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.decoding.decode_loop import BeamSearchResult
from t2t_repro.decoding.lexical_constraints import Terms
from t2t_repro.fast import small_batch_matmul
from t2t_repro.fast.absorbed_attention import biased_softmax
from t2t_repro.fast.flat_attention import (
    flatten_tokens,
    merge_heads,
    softmax_of_any_width,
    split_heads,
)
from t2t_repro.fast.kv_cache import KVCacheSlots, KVCacheState, LayerKVCache
from t2t_repro.fast.stand_ins import stand_in_for
from t2t_repro.layers.attention import MASKED, MultiHeadAttention
from t2t_repro.layers.relative import RelativeAttention
from t2t_repro.layers.stacks import DecoderLayer
from t2t_repro.models import generate
from t2t_repro.models.ensemble import EnsembleDecoder, ModelDecoder
from t2t_repro.models.transformer import Transformer


class KVCacheDecoder:
    """Stands in for `CachedDecoder`: other states, the same logits.

    Args:
        model: the model, already built.
        beam_size: hypotheses per sentence.
    """

    def __init__(self, model: Transformer, beam_size: int) -> None:
        self.model = model
        self.beam_size = beam_size
        self.vocab_size = model.vocab_size
        attention = model.decoder.layer_0.self_attention
        self._columns = KVCacheSlots(
            beam_size,
            attention.num_heads,
            getattr(attention, "radius", 0),
            isinstance(attention, RelativeAttention),
        )

    def start(self, inputs: tf.Tensor) -> KVCacheState:
        """Returns the state before the first step, for int32 (batch, source)."""
        encoder_output, mask = self.model.encode(inputs)
        bias = (1.0 - tf.cast(mask[:, None], tf.float32)) * MASKED
        # For each hypothesis: with one for all oneDNN adds it within the product, which
        # for so small a one takes twice as long.
        bias = tf.repeat(bias, self.beam_size, axis=2)
        batch = tf.shape(inputs)[0]
        caches = []
        for layer in self.model.decoder.layers_in_order():
            attention = layer.self_attention
            keys, values = layer.cross_attention.project_memory(encoder_output)
            no_keys, no_values = (
                tf.zeros([batch, attention.num_heads, 1, d], keys.dtype)
                for d in (attention.d_k, attention.d_v)
            )
            caches.append(LayerKVCache(no_keys, no_values, keys, values))
        return self._columns.first(tuple(caches), bias)

    def prepack(self, sentences: tf.Tensor) -> AbstractContextManager[None]:
        """Prepares the products of the steps for a CPU; wrap the whole search in it.

        `sentences`, int32 (), is the most sentences of a step.
        """
        return small_batch_matmul.prepacked(
            kernels_of_a_step(self.model),
            [self.model.softmax_table.table],
            sentences * self.beam_size,
            self.model.compute_dtype,
        )

    def step(
        self, ids: tf.Tensor, index: tf.Tensor, state: KVCacheState
    ) -> tuple[tf.Tensor, KVCacheState]:
        """Reads one symbol per hypothesis and scores the next; see `CachedDecoder`."""
        state, place = self._columns.entered(state, index)
        distances = self._columns.distances(state, index)
        ids = tf.ensure_shape(ids, [None, self.beam_size])
        # Layers take rows as well as sentences: (batch * beam, d_model)
        x = flatten_tokens(self.model.step_input(ids, tf.reshape(index, [1])))
        caches = []
        layers = self.model.decoder.layers_in_order()
        for layer, cache in zip(layers, state.layers, strict=True):
            x, cache = self._layer_step(layer, x, cache, state, place, distances)
            caches.append(cache)
        logits = self.model.logits(self.model.decoder.finish(x))
        # (batch * beam, V) -> (batch, beam, V)
        logits = tf.reshape(logits, [-1, self.beam_size, logits.shape[-1]])
        return tf.cast(logits, tf.float32), state._replace(layers=tuple(caches))

    def _layer_step(
        self,
        layer: DecoderLayer,
        x: tf.Tensor,
        cache: LayerKVCache,
        state: KVCacheState,
        place: tf.Tensor,
        distances: tf.Tensor | None,
    ) -> tuple[tf.Tensor, LayerKVCache]:
        """Applies a layer to one symbol of each hypothesis, (batch * beam, d_model)."""
        attention, columns = layer.self_attention, self._columns
        bias = state.self_bias[:, None]

        def self_attend(y: tf.Tensor) -> tf.Tensor:
            nonlocal cache
            query, keys, values = project_all(attention, y, self.beam_size)
            keys = columns.written(cache.self_keys, keys, place)
            values = columns.written(cache.self_values, values, place)
            cache = cache._replace(self_keys=keys, self_values=values)
            if distances is None:
                return _attend(attention, query, keys, values, bias)
            weights = attention.attention_weights(
                query, keys, tf.equal(bias, 0.0), distances
            )
            return merge_heads(
                attention, attention.weighted_sum(weights, values, distances)
            )

        def cross_attend(y: tf.Tensor) -> tf.Tensor:
            return self._cross_attend(
                layer.cross_attention, y, cache, state.source_bias
            )

        x = layer.apply_sublayers(x, self_attend, cross_attend)
        return x, cache

    def _cross_attend(
        self,
        attention: MultiHeadAttention,
        y: tf.Tensor,
        cache: LayerKVCache,
        bias: tf.Tensor,
    ) -> tf.Tensor:
        """Computes cross-attention: float (batch * beam, d_model) of such rows."""
        query = split_heads(
            attention, attention.query(y) * attention.d_k**-0.5, self.beam_size
        )
        return _attend(attention, query, cache.cross_keys, cache.cross_values, bias)

    def select_beams(self, state: KVCacheState, parents: tf.Tensor) -> KVCacheState:
        """Gives hypothesis k the past of ``parents[:, k]``, int32 (batch, beam)."""
        self_bias = tf.gather(state.self_bias, parents, batch_dims=1)
        return state._replace(self_bias=self_bias)

    def select_sentences(self, state: KVCacheState, keep: tf.Tensor) -> KVCacheState:
        """Keeps the sentences of some rows, int32 (kept,)."""
        return tf.nest.map_structure(lambda tensor: tf.gather(tensor, keep), state)


def generate_prepacked(
    search: DecodingConfig,
    decoder: ModelDecoder,
    inputs: tf.Tensor,
    prefixes: tf.Tensor | None = None,
    width: int | None = None,
    terms: Terms | None = None,
) -> BeamSearchResult:
    """Stands in for `generate.generate`, with the products of all steps prepared."""
    one_or_more = (
        decoder.decoders if isinstance(decoder, EnsembleDecoder) else [decoder]
    )
    with contextlib.ExitStack() as stack:
        for each in one_or_more:
            if isinstance(each, KVCacheDecoder):
                stack.enter_context(each.prepack(tf.shape(inputs)[0]))
        return generate.generate.reference(
            search, decoder, inputs, prefixes, width, terms
        )


def project_all(
    attention: MultiHeadAttention, x: tf.Tensor, length: int
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Projects queries, keys and values of self-attention by one product.

    `small_batch_matmul.prepacked` lays the kernels side by side once for all steps.

    Args:
        attention: whose projections.
        x: float (batch * length, d_model).
        length: positions of a sentence.

    Returns:
        queries, float (batch, heads, length, d_k), multiplied by d_k^-0.5; keys,
        float (batch, heads, length, d_k); values, float (batch, heads, length, d_v).
    """
    joined = small_batch_matmul.product_of_layers(
        x, attention.query, attention.key, attention.value
    )
    heads, d_k = attention.num_heads, attention.d_k
    if d_k == attention.d_v:
        split = ops.reshape(joined, (-1, length, 3, heads, d_k))
        query, key, value = ops.unstack(ops.transpose(split, (2, 0, 3, 1, 4)), 3)
    else:
        ends = [heads * d_k, 2 * heads * d_k]
        query, key, value = (
            split_heads(attention, rows, length) for rows in ops.split(joined, ends, 1)
        )
    return query * d_k**-0.5, key, value


def kernels_of_a_step(model: Transformer) -> list[list[keras.Variable]]:
    """Returns what a step multiplies by: those that share a product, together."""
    kernels = []
    for layer in model.decoder.layers_in_order():
        attention, cross = layer.self_attention, layer.cross_attention
        network = layer.feed_forward
        kernels.append(_joined_kernels(attention))
        for projection in (
            attention.output_projection,
            cross.query,
            cross.output_projection,
            network.hidden,
            network.output_projection,
        ):
            kernels.append([projection.kernel])
    return kernels


def _joined_kernels(attention: MultiHeadAttention) -> list[keras.Variable]:
    return [attention.query.kernel, attention.key.kernel, attention.value.kernel]


def _attend(
    attention: MultiHeadAttention,
    query: tf.Tensor,
    keys: tf.Tensor,
    values: tf.Tensor,
    bias: tf.Tensor,
) -> tf.Tensor:
    """Attends with a bias that is made: float (batch * length, d_model)."""
    logits = ops.matmul(query, ops.transpose(keys, (0, 1, 3, 2)))
    if stand_in_for(attention.output_projection.kernel) is None:
        weights = biased_softmax(logits, bias)
    else:
        weights = softmax_of_any_width(logits + bias)
    return merge_heads(attention, ops.matmul(weights, values))
