"""Decoder with a KV cache of constant size, in the form that keras-hub's samplers call.

`models.cached_decoder` has a cache that grows, for TensorFlow only.
"""

from typing import NamedTuple

from keras import ops

from t2t_repro.layers.functional import Tensor
from t2t_repro.layers.local_attention import LocalAttention
from t2t_repro.layers.relative import RelativeAttention
from t2t_repro.layers.stacks import DecoderLayer
from t2t_repro.models.transformer import Transformer

KeysAndValues = tuple[Tensor, Tensor]
"""Keys, float (groups, heads, positions, d_k), and values (..., d_v), of one layer."""


class Cache(NamedTuple):
    """Cache of groups of hypotheses that share their keys and values.

    When hypotheses are reordered, only `owners` is reordered, which is much smaller
    than the keys and values (as in `fast.kv_cache`).

    Attributes:
        layers: Keys and values of each layer; position p of hypothesis n is in slot
            ``p * beams + n``.
        owners: int32 (groups, beams, width), the hypothesis whose slot contains each
            position of a hypothesis.
    """

    layers: tuple[KeysAndValues, ...]
    owners: Tensor


class CachedDecoder:
    """Decoder of one batch of sentences.

    Keys and values of the source are not part of the cache, because they are the same
    for all hypotheses.

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

    def initial_cache(self, beams: int = 1) -> Cache:
        """Returns the cache before the first step, with one group per sentence.

        Args:
            beams: Number of hypotheses that share keys and values; 1 for samplers that
                copy and reorder the whole cache.
        """
        caches = []
        for layer in self._transformer.decoder.layers_in_order():
            attention = layer.self_attention
            keys, values = (
                ops.zeros(
                    (self._batch, attention.num_heads, self._width * beams, depth),
                    attention.compute_dtype,
                )
                for depth in (attention.d_k, attention.d_v)
            )
            caches.append((keys, values))
        owners = ops.zeros((self._batch, beams, self._width), "int32")
        return Cache(tuple(caches), owners)

    @staticmethod
    def select(cache: Cache, parents: Tensor) -> Cache:
        """Gives hypothesis n the past of ``parents[:, n]``, int32 (groups, beams)."""
        owners = ops.take_along_axis(cache.owners, parents[:, :, None], axis=1)
        return cache._replace(owners=owners)

    def next(
        self, tokens: Tensor, cache: Cache, index: Tensor
    ) -> tuple[Tensor, Tensor, Cache]:
        """Computes the logits of the token at a position.

        Args:
            tokens: int32 (groups * beams, width), the start token and the hypotheses.
            cache: Cache after the previous step.
            index: int32 (), the position, from 1.

        Returns:
            The logits, float (groups * beams, V), the decoder's output, float (groups *
            beams, d_model), and the new cache.
        """
        groups, beams, width = cache.owners.shape
        last = ops.reshape(ops.take(tokens, index - 1, axis=1), (groups, beams))
        position = ops.reshape(index - 1, (1,))
        numbers, steps = ops.arange(beams), ops.arange(width, dtype="int32")
        owners = ops.where(steps == position, numbers[:, None], cache.owners)
        visible = owners[..., None] == numbers
        visible = visible & (steps <= position)[:, None]
        visible = ops.reshape(visible, (groups, 1, beams, width * beams))
        distances = ops.repeat(steps - position, beams)
        distances = ops.tile(distances[None], (beams, 1))
        x = self._transformer.step_input(last, position)
        layers, caches = self._transformer.decoder.layers_in_order(), []
        for layer, memory, past in zip(layers, self._memory, cache.layers, strict=True):
            x, new = self._layer_step(
                layer, memory, x, past, index - 1, visible, distances
            )
            caches.append(new)
        x = self._transformer.decoder.finish(x)
        x = ops.reshape(x, (groups * beams, x.shape[-1]))
        return self._transformer.logits(x), x, Cache(tuple(caches), owners)

    def _layer_step(
        self,
        layer: DecoderLayer,
        memory: KeysAndValues,
        x: Tensor,
        past: KeysAndValues,
        position: Tensor,
        visible: Tensor,
        distances: Tensor,
    ) -> tuple[Tensor, KeysAndValues]:
        """Applies a layer to one token per hypothesis, float (groups, beams, d_model).

        The hypotheses of a group take the place of target positions.
        """
        attention, cross = layer.self_attention, layer.cross_attention
        is_relative = isinstance(attention, LocalAttention | RelativeAttention)
        where = {"distances": distances} if is_relative else {}
        new = past

        def self_attend(y: Tensor) -> Tensor:
            nonlocal new
            slot = position * y.shape[1]
            keys, values = (
                ops.slice_update(old, (0, 0, slot, 0), ops.cast(each, old.dtype))
                for old, each in zip(past, attention.project_memory(y), strict=True)
            )
            new = keys, values
            query = attention.project_query(y)
            return attention.attend(query, keys, values, visible, **where)

        def cross_attend(y: Tensor) -> Tensor:
            y = ops.reshape(y, (self._batch, -1, y.shape[-1]))
            y = cross.attend(cross.project_query(y), *memory, self._source_mask)
            return ops.reshape(y, x.shape)

        return layer.apply_sublayers(x, self_attend, cross_attend), new
