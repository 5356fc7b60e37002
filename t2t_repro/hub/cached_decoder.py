"""Decoder with a KV cache of constant size, in the form that keras-hub's samplers call.

`models.cached_decoder` has a cache that grows, for TensorFlow only.
"""

from keras import ops

from t2t_repro.layers.functional import Tensor
from t2t_repro.layers.local_attention import LocalAttention
from t2t_repro.layers.relative import RelativeAttention
from t2t_repro.layers.stacks import DecoderLayer
from t2t_repro.models.transformer import Transformer

LayerCache = tuple[Tensor, Tensor]
"""Keys, float (rows, heads, width, d_k), and values (rows, heads, width, d_v)."""


class CachedDecoder:
    """Decoder of one batch of sentences.

    Keys and values of the source are not part of the cache, so samplers do not copy
    them for each hypothesis.

    Args:
        transformer: The model.
        source: int32 (batch, source), ending in EOS, 0-padded.
        width: Maximum number of decoder positions.
    """

    def __init__(self, transformer: Transformer, source: Tensor, width: int) -> None:
        self._transformer, self._width = transformer, width
        self._batch = source.shape[0]
        encoder_output, mask = transformer.encode(source)
        self._source_mask = mask[:, None]
        self._memory = [
            layer.cross_attention.project_memory(encoder_output)
            for layer in transformer.decoder.layers_in_order()
        ]

    def initial_cache(self) -> tuple[LayerCache, ...]:
        """Returns the cache before the first step, with one row per sentence."""
        caches = []
        for layer in self._transformer.decoder.layers_in_order():
            attention = layer.self_attention
            keys, values = (
                ops.zeros(
                    (self._batch, attention.num_heads, self._width, depth),
                    attention.compute_dtype,
                )
                for depth in (attention.d_k, attention.d_v)
            )
            caches.append((keys, values))
        return tuple(caches)

    def next(
        self, tokens: Tensor, cache: tuple[LayerCache, ...], index: Tensor
    ) -> tuple[Tensor, Tensor, tuple[LayerCache, ...]]:
        """Computes the logits of the token at a position.

        Args:
            tokens: int32 (rows, width), the start token and the hypotheses; each
                sentence has the same number of consecutive rows.
            cache: Cache after the previous step.
            index: int32 (), the position, from 1.

        Returns:
            The logits, float (rows, V), the decoder's output, float (rows, d_model),
            and the new cache.
        """
        last = ops.take(tokens, index - 1, axis=1)[:, None]
        x = self._transformer.step_input(last, ops.reshape(index - 1, (1,)))
        layers, caches = self._transformer.decoder.layers_in_order(), []
        for layer, memory, past in zip(layers, self._memory, cache, strict=True):
            x, new = self._layer_step(layer, memory, x, past, index - 1)
            caches.append(new)
        x = self._transformer.decoder.finish(x)[:, 0]
        return self._transformer.logits(x), x, tuple(caches)

    def _layer_step(
        self,
        layer: DecoderLayer,
        memory: LayerCache,
        x: Tensor,
        cache: LayerCache,
        position: Tensor,
    ) -> tuple[Tensor, LayerCache]:
        """Applies a layer to one token of each row, float (rows, 1, d_model)."""
        attention, cross = layer.self_attention, layer.cross_attention
        # (1, width)
        distances = ops.arange(self._width, dtype="int32")[None] - position
        where = {}
        if isinstance(attention, LocalAttention | RelativeAttention):
            where["distances"] = distances

        def self_attend(y: Tensor) -> Tensor:
            nonlocal cache
            cache = tuple(
                ops.slice_update(past, (0, 0, position, 0), new)
                for past, new in zip(cache, attention.project_memory(y), strict=True)
            )
            query = attention.project_query(y)
            return attention.attend(query, *cache, distances <= 0, **where)

        def cross_attend(y: Tensor) -> Tensor:
            # The hypotheses of a sentence take the place of target positions.
            y = ops.reshape(y, (self._batch, -1, y.shape[-1]))
            y = cross.attend(cross.project_query(y), *memory, self._source_mask)
            return ops.reshape(y, x.shape)

        x = layer.apply_sublayers(x, self_attend, cross_attend)
        return x, cache
