"""Cached decoder with a state of constant shape, as XLA needs."""

import tensorflow as tf

from t2t_repro.fast import absorbed_attention
from t2t_repro.fast.cached_decoder import KVCacheDecoder, matmuls_of_a_step
from t2t_repro.fast.kv_cache import FixedKVCacheSlots, KVCacheState, LayerKVCache
from t2t_repro.fast.small_batch_matmul import StepMatmuls, split_weights
from t2t_repro.layers.attention import MultiHeadAttention
from t2t_repro.models.transformer import Transformer


class StaticDecoder(KVCacheDecoder):
    """`KVCacheDecoder` for single sentences, in a function that XLA compiles.

    With one sentence, a step consists of many small operations, and starting them takes
    TensorFlow most of the time. XLA fuses them; reading the weights, on all cores, then
    takes most of the time.

    Args:
        model: The model, already built.
        beam_size: Number of hypotheses per sentence.
        width: Maximum number of steps.
        matmuls: Matmuls of a step, from `split_step_weights`.
    """

    def __init__(
        self, model: Transformer, beam_size: int, width: int, matmuls: StepMatmuls
    ) -> None:
        super().__init__(model, beam_size, matmuls)
        self._slots = FixedKVCacheSlots(**vars(self._slots), width=width)

    def start(self, inputs: tf.Tensor) -> KVCacheState:
        """Runs the encoder; folds its output into the projections if it is short.

        The inputs are int32 (batch, source), with a static length.
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


def split_step_weights(model: Transformer) -> StepMatmuls:
    """Copies the decoder's weights in a layout that is fast for XLA's matmuls."""
    return split_weights(matmuls_of_a_step(model), model.compute_dtype)


def _is_foldable(source: int, attention: MultiHeadAttention) -> bool:
    """Returns whether folding is possible (no bias) and makes the matrices smaller."""
    return not attention.query.use_bias and source < min(attention.d_k, attention.d_v)
