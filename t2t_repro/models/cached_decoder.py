"""One step of the decoder at a time, with keys and values kept from earlier steps."""

import contextlib
from contextlib import AbstractContextManager
from typing import NamedTuple

import tensorflow as tf

from t2t_repro.layers import few_rows
from t2t_repro.layers.masks import MASKED
from t2t_repro.layers.rows import rows_of
from t2t_repro.models.transformer import Transformer

# Caches have places for so many steps more when they are full.
_STEPS_MORE = 16


class LayerCache(NamedTuple):
    """Keys and values of one decoder layer.

    Attributes:
        self_keys: float (batch, heads, places * beam, d_k), column s * beam + k from
            the hypothesis that was number k at step s; zeros where no step was yet.
        self_values: float (batch, heads, places * beam, d_v).
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
        ancestors: int32 (batch, beam, places), the number that each hypothesis's own
            past had at each step; -1 where no step was yet.
        source_bias: float32 (batch, 1, 1, source), hides padding.
    """

    layers: tuple[LayerCache, ...]
    ancestors: tf.Tensor
    source_bias: tf.Tensor


class CachedDecoder:
    """The model as a search sees it: logits of the next symbol, and a state.

    Keys and values stay where they were written. When hypotheses are reordered, every
    hypothesis of a sentence looks at all its columns, and a mask made from its
    ancestors hides those that are not its own past. Reordering then moves a few
    integers instead of every cache. A step writes its columns in place, so that one
    state leads to one next state; only when all places are taken, which is once in 16
    steps, are the caches copied.

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
                    tf.zeros([batch, heads, 0, attention.d_k], dtype),
                    tf.zeros([batch, heads, 0, attention.d_v], dtype),
                    cross_keys,
                    cross_values,
                )
            )
        ancestors = tf.zeros([batch, self.beam_size, 0], tf.int32)
        return DecodingState(tuple(caches), ancestors, bias)

    def quick_steps(self, sentences: tf.Tensor) -> AbstractContextManager[None]:
        """Prepares the products of the steps; around a whole search, on a CPU.

        Args:
            sentences: int32 (), the most sentences of a step.

        Returns:
            The context in which they are prepared; on a GPU it does nothing.
        """
        if tf.config.list_physical_devices("GPU"):
            return contextlib.nullcontext()
        projections = []
        for layer in self.model.decoder.layers_in_order():
            attention, cross = layer.self_attention, layer.cross_attention
            network = layer.feed_forward
            projections += [attention.query, attention.key, attention.value]
            projections += [attention.output_projection]
            projections += [cross.query, cross.output_projection]
            projections += [network.hidden, network.output_projection]
        return few_rows.prepared(
            [projection.kernel for projection in projections],
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
        state = tf.cond(
            index < tf.shape(state.ancestors)[2],
            lambda: state,
            lambda: self._with_more_places(state),
        )
        # The hypotheses of a sentence take the place of target positions.
        ids = tf.ensure_shape(ids, [None, self.beam_size])
        shape = (tf.shape(ids)[0], self.beam_size)
        x = rows_of(self.model.step_input(ids, index))
        places = tf.range(tf.shape(state.ancestors)[2])
        numbers = tf.range(self.beam_size)[:, None]
        ancestors = tf.where(tf.equal(places, index), numbers, state.ancestors)
        bias = self._ancestry_bias(ancestors)
        distances = tf.repeat(tf.minimum(places - index, 0), self.beam_size)
        distances = tf.tile(distances[None, :], [self.beam_size, 1])
        radius = self.model.decoder.shape.self_attention_radius
        if radius:
            bias += tf.where(distances < -radius, MASKED, 0.0)
        caches = []
        for layer, cache in zip(
            self.model.decoder.layers_in_order(), state.layers, strict=True
        ):
            y = layer.self_attention_residual.enter(x)
            keys, values = layer.self_attention.project_memory(y, shape)
            keys = self._written(cache.self_keys, keys, index)
            values = self._written(cache.self_values, values, index)
            attention = layer.self_attention
            query = attention.project_query(y, shape)
            y = attention.attend(query, keys, values, bias, distances)
            x = layer.self_attention_residual(x, y)
            y = layer.cross_attention_residual.enter(x)
            attention = layer.cross_attention
            query = attention.project_query(y, shape)
            y = attention.attend(
                query, cache.cross_keys, cache.cross_values, state.source_bias
            )
            x = layer.cross_attention_residual(x, y)
            y = layer.feed_forward_residual.enter(x)
            x = layer.feed_forward_residual(x, layer.feed_forward(y))
            caches.append(cache._replace(self_keys=keys, self_values=values))
        logits = self.model.logits(self.model.decoder.finish(x))
        state = DecodingState(tuple(caches), ancestors, state.source_bias)
        # (batch * beam, V) -> (batch, beam, V)
        logits = tf.reshape(logits, [*shape, logits.shape[-1]])
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

    def _with_more_places(self, state: DecodingState) -> DecodingState:
        """Copies the caches into larger ones."""
        more = _STEPS_MORE * self.beam_size

        def larger(cache: tf.Tensor) -> tf.Tensor:
            return tf.pad(cache, [[0, 0], [0, 0], [0, more], [0, 0]])

        layers = tuple(
            cache._replace(
                self_keys=larger(cache.self_keys),
                self_values=larger(cache.self_values),
            )
            for cache in state.layers
        )
        ancestors = tf.pad(
            state.ancestors, [[0, 0], [0, 0], [0, _STEPS_MORE]], constant_values=-1
        )
        return state._replace(layers=layers, ancestors=ancestors)

    def _ancestry_bias(self, ancestors: tf.Tensor) -> tf.Tensor:
        """Shows each hypothesis its own past alone.

        Args:
            ancestors: int32 (batch, beam, places).

        Returns:
            float32 (batch, 1, beam, places * beam).
        """
        bias = tf.one_hot(ancestors, self.beam_size, on_value=0.0, off_value=MASKED)
        # (batch, beam, places, beam) -> (batch, 1, beam, places * beam)
        rows, beam = tf.shape(ancestors)[0], self.beam_size
        return tf.reshape(bias, [rows, 1, beam, tf.shape(ancestors)[2] * beam])

    def _written(self, cache: tf.Tensor, new: tf.Tensor, index: tf.Tensor) -> tf.Tensor:
        """Writes the columns of a step into the cache itself.

        Copying all of it at each step would take a seventh of the time of a search on
        a CPU, and there TensorFlow's scatter operations copy.

        Args:
            cache: float (batch, heads, places * beam, d), of which nobody needs the
                old state.
            new: float (batch, heads, beam, d).
            index: int32 (), the step.

        Returns:
            The cache.
        """
        shape = tf.shape(cache)
        rows, heads, columns, depth = tf.unstack(shape)
        places = columns // self.beam_size
        # (batch, heads, places * beam, d) -> (batch * heads * places, beam * d)
        written = tf.raw_ops.InplaceUpdate(
            x=tf.reshape(cache, [rows * heads * places, self.beam_size * depth]),
            i=tf.range(rows * heads) * places + index,
            v=tf.reshape(new, [rows * heads, self.beam_size * depth]),
        )
        return tf.reshape(written, shape)
