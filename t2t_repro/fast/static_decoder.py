"""Cached decoder with a state of constant shape, as XLA needs."""

from typing import Any

import tensorflow as tf
from keras import ops

from t2t_repro.fast import absorbed_attention
from t2t_repro.fast.cached_decoder import KVCacheDecoder, Memory, matmuls_of_a_step
from t2t_repro.fast.kv_cache import FixedKVCacheSlots, KVCacheState, LayerKVCache
from t2t_repro.fast.small_batch_matmul import StepMatmuls, is_plain, transpose_weights
from t2t_repro.layers.attention import MultiHeadAttention
from t2t_repro.layers.relative import RelativeAttention
from t2t_repro.models.transformer import Transformer


class StaticDecoder(KVCacheDecoder):
    """`KVCacheDecoder` for a few sentences, in a function that XLA compiles.

    A step then consists of many small operations, and starting them takes TensorFlow
    most of the time. XLA fuses them; reading the weights, on all cores, then takes most
    of the time.

    Args:
        model: The model, already built.
        beam_size: Number of hypotheses per sentence.
        width: Maximum number of steps.
        matmuls: Matmuls of a step, from `transpose_step_weights`.
        memory: Result of `KVCacheDecoder.read`, with a static length. XLA would compile
            the encoder, too, and compute it more slowly.
    """

    def __init__(
        self,
        model: Transformer,
        beam_size: int,
        width: int,
        matmuls: StepMatmuls,
        memory: Memory,
    ) -> None:
        super().__init__(model, beam_size, matmuls)
        self._slots = FixedKVCacheSlots(**vars(self._slots), width=width)
        self._memory = memory
        self._shapes: list[tf.TensorShape] = []

    def start(self, inputs: tf.Tensor) -> KVCacheState:
        """Returns the state before the first step; folds a short memory.

        Keys that are not folded are transposed.
        """
        state = self.initial_state(self._memory)
        caches = []
        layers = self.model.decoder.layers_in_order()
        for layer, cache in zip(layers, state.layers, strict=True):
            if _is_foldable(inputs.shape, layer.cross_attention):
                keys, values = absorbed_attention.fold(
                    layer.cross_attention, cache.cross_keys, cache.cross_values
                )
                cache = cache._replace(cross_keys=keys, cross_values=values)
            else:
                keys = tf.linalg.matrix_transpose(cache.cross_keys)
                cache = cache._replace(cross_keys=keys)
            self_keys = tf.linalg.matrix_transpose(cache.self_keys)
            caches.append(cache._replace(self_keys=self_keys))
        state = state._replace(layers=tuple(caches))
        self._shapes = [tensor.shape for tensor in tf.nest.flatten(state)]
        return state

    def step(
        self, ids: tf.Tensor, index: tf.Tensor, state: KVCacheState
    ) -> tuple[tf.Tensor, KVCacheState]:
        """Does what `KVCacheDecoder.step` does, with static shapes.

        The loop of the search loses the shapes, by which `xla_kernels` divides
        reductions.
        """
        ids = tf.ensure_shape(ids, [self._memory[1].shape[0], self.beam_size])
        tensors = map(tf.ensure_shape, tf.nest.flatten(state), self._shapes)
        state = tf.nest.pack_sequence_as(state, [*tensors])
        return super().step(ids, index, state)

    def _cross_attend(
        self,
        attention: MultiHeadAttention,
        y: tf.Tensor,
        cache: LayerKVCache,
        bias: tf.Tensor,
    ) -> tf.Tensor:
        if cache.cross_keys.shape.rank == 3:
            memory = cache.cross_keys, cache.cross_values, bias[:, :, :1]
            return absorbed_attention.attend(attention, y, *memory, self.beam_size)
        return super()._cross_attend(attention, y, cache, bias)

    def _attend(
        self,
        attention: MultiHeadAttention,
        query: tf.Tensor,
        keys: tf.Tensor,
        *args: Any,
    ) -> tf.Tensor:
        if isinstance(attention, RelativeAttention):
            keys = tf.linalg.matrix_transpose(keys)
        return super()._attend(attention, query, keys, *args)

    def _logits(self, query: tf.Tensor, keys: tf.Tensor) -> tf.Tensor:
        return ops.matmul(query, keys)


def transpose_step_weights(model: Transformer) -> StepMatmuls:
    """Copies the decoder's weights in a layout that is fast for XLA's matmuls."""
    return transpose_weights(matmuls_of_a_step(model), model.compute_dtype)


def _is_foldable(shape: tf.TensorShape, attention: MultiHeadAttention) -> bool:
    """Returns whether folding is possible and makes the matrices smaller.

    Every sentence of inputs with this shape has its own folded matrices.
    """
    projections = attention.query, attention.output_projection
    is_possible = all(map(is_plain, projections)) and not attention.query.use_bias
    return is_possible and shape.num_elements() < min(attention.d_k, attention.d_v)
