"""A cached decoder whose state never changes its shape, for XLA to compile."""

from typing import Self

import tensorflow as tf

from t2t_repro.fast import absorbed_attention
from t2t_repro.fast.cached_decoder import KVCacheDecoder, matmuls_of_a_step
from t2t_repro.fast.kv_cache import FixedKVCacheSlots, KVCacheState, LayerKVCache
from t2t_repro.fast.small_batch_matmul import StepMatmuls, split_weights
from t2t_repro.layers.attention import MultiHeadAttention
from t2t_repro.models.transformer import Transformer


class StaticDecoder(KVCacheDecoder):
    """One step of the decoder at a time, for a sentence alone.

    A step of one sentence is many small operations, each of which TensorFlow has to
    begin; compiled, they are few. What is left is reading the weights, on all cores.

    It is a `KVCacheDecoder`, to be called in a function that XLA compiles.

    Args:
        model: the model, already built.
        beam_size: hypotheses per sentence.
        width: the most steps.
        halves: the matmuls of its steps, from `halves_of_a_step`.
    """

    def __init__(
        self, model: Transformer, beam_size: int, width: int, halves: StepMatmuls
    ) -> None:
        super().__init__(model, beam_size, halves)
        self._columns = FixedKVCacheSlots(**vars(self._columns), width=width)

    def start(self, inputs: tf.Tensor) -> KVCacheState:
        """Runs the encoder, and folds its output into every layer's projections.

        The length of the inputs, int32 (batch, source), is static.
        """
        state = super().start(inputs)
        caches = []
        layers = self.model.decoder.layers_in_order()
        for layer, cache in zip(layers, state.layers, strict=True):
            if _is_foldable(inputs.shape[1], layer.cross_attention):
                keys, values = absorbed_attention.fold(
                    layer.cross_attention, cache.cross_keys, cache.cross_values
                )
                cache = cache._replace(cross_keys=keys, cross_values=values)
            caches.append(cache)
        return state._replace(layers=tuple(caches))

    def prepacked(self, sentences: tf.Tensor) -> Self:
        """Returns itself: the halves serve any number of sentences."""
        return self

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


def halves_of_a_step(model: Transformer) -> StepMatmuls:
    """Copies the weights of a decoder's step, as fast matmuls read them."""
    return split_weights([*matmuls_of_a_step(model)], model.compute_dtype)


def _is_foldable(source: int, attention: MultiHeadAttention) -> bool:
    """Whether folded matrices are smaller than the projections, which have no bias."""
    return not attention.query.use_bias and source < min(attention.d_k, attention.d_v)
