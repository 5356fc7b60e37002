"""One step of the decoder at a time, with keys and values kept from earlier steps."""

from typing import NamedTuple

import tensorflow as tf

from t2t_repro.layers.masks import MASKED
from t2t_repro.models.transformer import Transformer


class LayerCache(NamedTuple):
    """Keys and values of one decoder layer.

    Attributes:
        self_keys: float (batch, heads, steps * beam, d_k), column s * beam + k from
            the hypothesis that was number k at step s.
        self_values: float (batch, heads, steps * beam, d_v).
        cross_keys: float (batch, heads, source, d_k), once per sentence.
        cross_values: float (batch, heads, source, d_v).
    """

    self_keys: tf.Tensor
    self_values: tf.Tensor
    cross_keys: tf.Tensor
    cross_values: tf.Tensor


class DecodingState(NamedTuple):
    """What the decoder remembers of a batch of sentences.

    Attributes:
        layers: one cache per decoder layer.
        ancestors: int32 (batch, beam, steps), the number that each hypothesis's own
            past had at each step.
        source_bias: float32 (batch, 1, 1, source), hides padding.
    """

    layers: tuple[LayerCache, ...]
    ancestors: tf.Tensor
    source_bias: tf.Tensor


class CachedDecoder:
    """The model as a search sees it: logits of the next symbol, and a state.

    Caches only ever grow. When hypotheses are reordered, their keys and values stay
    where they are: every hypothesis of a sentence looks at all its columns, and a
    mask made from its ancestors hides those that are not its own past. Reordering
    then moves a few integers instead of every cache.

    It serves `t2t_repro.decoding`, whose `Decoder` protocol it follows.

    Args:
        model: the model, already built.
        beam_size: hypotheses per sentence.
    """

    def __init__(self, model: Transformer, beam_size: int) -> None:
        self.model = model
        self.beam_size = beam_size

    def start(self, inputs: tf.Tensor) -> DecodingState:
        """Runs the encoder and projects its output once for every layer.

        Args:
            inputs: int32 (batch, source), ending in EOS, 0-padded.

        Returns:
            The state before the first step.
        """
        encoder_output, bias = self.model.encode(inputs)
        rows = tf.shape(inputs)[0]
        caches = []
        for layer in self.model.decoder.layers_in_order():
            attention = layer.self_attention
            cross_keys, cross_values = layer.cross_attention.project_memory(
                encoder_output
            )
            dtype = cross_keys.dtype
            heads = attention.num_heads
            caches.append(
                LayerCache(
                    tf.zeros([rows, heads, 0, attention.d_k], dtype),
                    tf.zeros([rows, heads, 0, attention.d_v], dtype),
                    cross_keys,
                    cross_values,
                )
            )
        ancestors = tf.zeros([rows, self.beam_size, 0], tf.int32)
        return DecodingState(tuple(caches), ancestors, bias)

    def step(
        self, ids: tf.Tensor, index: tf.Tensor, state: DecodingState
    ) -> tuple[tf.Tensor, DecodingState]:
        """Reads one symbol per hypothesis and scores the next.

        Args:
            ids: int32 (batch, beam), the last symbols; 0 before the first.
            index: int32 (), the step, from 0.
            state: from `start` or the step before.

        Returns:
            float32 (batch, beam, V), logits; and the state with this step in it.
        """
        # The hypotheses of a sentence take the place of target positions.
        x = self.model.step_input(ids, index)
        numbers = tf.broadcast_to(tf.range(self.beam_size), tf.shape(ids))
        ancestors = tf.concat([state.ancestors, numbers[:, :, None]], axis=2)
        bias = self._ancestry_bias(ancestors)
        distances = self._distances(index)
        caches = []
        for layer, cache in zip(
            self.model.decoder.layers_in_order(), state.layers, strict=True
        ):
            y = layer.self_attention_residual.enter(x)
            keys, values = layer.self_attention.project_memory(y)
            keys = tf.concat([cache.self_keys, keys], axis=2)
            values = tf.concat([cache.self_values, values], axis=2)
            attention = layer.self_attention
            query = attention.project_query(y)
            y = attention.attend(query, keys, values, bias, distances)
            x = layer.self_attention_residual(x, y)
            y = layer.cross_attention_residual.enter(x)
            attention = layer.cross_attention
            query = attention.project_query(y)
            y = attention.attend(
                query, cache.cross_keys, cache.cross_values, state.source_bias
            )
            x = layer.cross_attention_residual(x, y)
            y = layer.feed_forward(layer.feed_forward_residual.enter(x))
            x = layer.feed_forward_residual(x, y)
            caches.append(cache._replace(self_keys=keys, self_values=values))
        logits = self.model.logits(self.model.decoder.finish(x))
        state = DecodingState(tuple(caches), ancestors, state.source_bias)
        # The caches' shapes are unknown while they grow, and the logits' with them.
        logits = tf.ensure_shape(logits, [None, self.beam_size, None])
        return tf.cast(logits, tf.float32), state

    def select_beams(self, state: DecodingState, parents: tf.Tensor) -> DecodingState:
        """Gives hypothesis k the past of hypothesis ``parents[:, k]``.

        Args:
            state: the state.
            parents: int32 (batch, beam).
        """
        ancestors = tf.gather(state.ancestors, parents, batch_dims=1)
        return state._replace(ancestors=ancestors)

    def select_sentences(self, state: DecodingState, keep: tf.Tensor) -> DecodingState:
        """Keeps some sentences of the batch.

        Args:
            state: the state.
            keep: int32 (kept,), their rows.
        """
        return tf.nest.map_structure(lambda tensor: tf.gather(tensor, keep), state)

    def _ancestry_bias(self, ancestors: tf.Tensor) -> tf.Tensor:
        """Shows each hypothesis its own past alone.

        Args:
            ancestors: int32 (batch, beam, steps).

        Returns:
            float32 (batch, 1, beam, steps * beam).
        """
        bias = tf.one_hot(ancestors, self.beam_size, on_value=0.0, off_value=MASKED)
        # (batch, beam, steps, beam) -> (batch, 1, beam, steps * beam)
        rows, beam = tf.shape(ancestors)[0], self.beam_size
        return tf.reshape(bias, [rows, 1, beam, tf.shape(ancestors)[2] * beam])

    def _distances(self, index: tf.Tensor) -> tf.Tensor:
        """Returns how far before the step now each column of the caches lies.

        Args:
            index: int32 (), the step.

        Returns:
            int32 (beam, steps * beam), for relative positions.
        """
        steps = tf.repeat(tf.range(index + 1), self.beam_size)
        return tf.tile((steps - index)[None, :], [self.beam_size, 1])
