"""One step of the decoder at a time, with keys and values kept from earlier steps."""

import contextlib
from contextlib import AbstractContextManager

import keras
import tensorflow as tf

from t2t_repro.layers import few_rows
from t2t_repro.layers.attention import MultiHeadAttention
from t2t_repro.layers.rows import rows_of
from t2t_repro.layers.typing import Shape
from t2t_repro.models.decoding_state import Columns, DecodingState, LayerCache
from t2t_repro.models.transformer import Transformer


class CachedDecoder:
    """The model as a search sees it: logits of the next symbol, and a state.

    `Columns` tells how keys and values of earlier steps are kept.

    It serves `t2t_repro.decoding`, whose `Decoder` protocol it follows.

    Args:
        model: the model, already built.
        beam_size: hypotheses per sentence.
    """

    def __init__(self, model: Transformer, beam_size: int) -> None:
        self.model = model
        self.beam_size = beam_size
        shape = model.decoder.shape
        self._columns = Columns(
            beam_size, shape.self_attention_radius, shape.max_relative_position > 0
        )

    def start(self, inputs: tf.Tensor) -> DecodingState:
        """Runs the encoder and projects its output once for every layer.

        Args:
            inputs: int32 (batch, source), ending in EOS, 0-padded.

        Returns:
            The state before the first step.
        """
        encoder_output, bias = self.model.encode(inputs)
        batch, source = tf.unstack(tf.shape(inputs))
        memory = rows_of(encoder_output)
        caches = []
        for layer in self.model.decoder.layers_in_order():
            attention = layer.self_attention
            cross_keys, cross_values = layer.cross_attention.project_memory(
                memory, (batch, source)
            )
            dtype = cross_keys.dtype
            heads = attention.num_heads
            caches.append(
                LayerCache(
                    tf.zeros([batch, heads, 1, attention.d_k], dtype),
                    tf.zeros([batch, heads, 1, attention.d_v], dtype),
                    cross_keys,
                    cross_values,
                )
            )
        return self._columns.first(tuple(caches), bias)

    def quick_steps(self, sentences: tf.Tensor) -> AbstractContextManager[None]:
        """Prepares the products of the steps; around a whole search, on a CPU.

        Args:
            sentences: int32 (), the most sentences of a step.

        Returns:
            The context in which they are prepared; on a GPU it does nothing.
        """
        if tf.config.list_physical_devices("GPU"):
            return contextlib.nullcontext()
        return few_rows.prepared(
            kernels_of_a_step(self.model),
            [self.model.softmax_table.table],
            sentences * self.beam_size,
            self.model.compute_dtype,
        )

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
        columns = self._columns
        state, group = columns.entered(state, index)
        self_bias = state.self_bias[:, None]
        distances = columns.distances(state, index)
        # The hypotheses of a sentence take the place of target positions.
        ids = tf.ensure_shape(ids, [None, self.beam_size])
        shape = (tf.shape(ids)[0], self.beam_size)
        x = rows_of(self.model.step_input(ids, index))
        caches = []
        for layer, cache in zip(
            self.model.decoder.layers_in_order(), state.layers, strict=True
        ):
            y = layer.self_attention_residual.enter(x)
            attention = layer.self_attention
            query, keys, values = attention.project_all(y, shape)
            keys = columns.written(cache.self_keys, keys, group)
            values = columns.written(cache.self_values, values, group)
            y = attention.attend(query, keys, values, self_bias, distances)
            x = layer.self_attention_residual(x, y)
            y = layer.cross_attention_residual.enter(x)
            y = self._attend_to_source(
                layer.cross_attention, y, cache, state.source_bias, shape
            )
            x = layer.cross_attention_residual(x, y)
            y = layer.feed_forward_residual.enter(x)
            x = layer.feed_forward_residual(x, layer.feed_forward(y))
            caches.append(cache._replace(self_keys=keys, self_values=values))
        logits = self.model.logits(self.model.decoder.finish(x))
        state = state._replace(layers=tuple(caches))
        # (batch * beam, V) -> (batch, beam, V)
        logits = tf.reshape(logits, [*shape, logits.shape[-1]])
        return tf.cast(logits, tf.float32), state

    def _attend_to_source(
        self,
        attention: MultiHeadAttention,
        y: tf.Tensor,
        cache: LayerCache,
        bias: tf.Tensor,
        shape: Shape,
    ) -> tf.Tensor:
        """Computes cross-attention: float (batch * beam, d_model) of such rows."""
        query = attention.project_query(y, shape)
        return attention.attend(query, cache.cross_keys, cache.cross_values, bias)

    def select_beams(self, state: DecodingState, parents: tf.Tensor) -> DecodingState:
        """Gives hypothesis k the past of hypothesis ``parents[:, k]``.

        Args:
            state: the state.
            parents: int32 (batch, beam).
        """
        self_bias = tf.gather(state.self_bias, parents, batch_dims=1)
        return state._replace(self_bias=self_bias)

    def select_sentences(self, state: DecodingState, keep: tf.Tensor) -> DecodingState:
        """Keeps some sentences of the batch.

        Args:
            state: the state.
            keep: int32 (kept,), their rows.
        """
        return tf.nest.map_structure(lambda tensor: tf.gather(tensor, keep), state)


def kernels_of_a_step(model: Transformer) -> list[list[keras.Variable]]:
    """Returns what a step multiplies by: those that share a product, together."""
    kernels = []
    for layer in model.decoder.layers_in_order():
        attention, cross = layer.self_attention, layer.cross_attention
        network = layer.feed_forward
        kernels.append(attention.joined_kernels())
        for projection in (
            attention.output_projection,
            cross.query,
            cross.output_projection,
            network.hidden,
            network.output_projection,
        ):
            kernels.append([projection.kernel])
    return kernels
