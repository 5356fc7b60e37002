"""What a `KVCacheDecoder` remembers, and how its self-attention finds its own past.

At each step a column is added to the keys and values of every layer for each
hypothesis of a sentence, and there it stays. Every hypothesis sees all columns of its
sentence, and a mask hides those that are not its own past. When hypotheses are
reordered, the masks are, instead of the keys and values.
"""

from dataclasses import dataclass
from typing import NamedTuple

import tensorflow as tf
from keras import ops

from t2t_repro.layers.attention import MASKED

# Steps for which there are free columns when the caches are copied. With more of them
# attention reads more that is hidden, with fewer the caches are copied more often.
_STEPS_MORE = 6


class LayerKVCache(NamedTuple):
    """Keys and values of one decoder layer.

    Attributes:
        self_keys: float (batch, heads, columns, d_k); those of a step are side by
            side, from hypothesis 0 on.
        self_values: float (batch, heads, columns, d_v).
        cross_keys: float (batch, heads, source, d_k), once per sentence; or as
            `folded.fold` makes it, (batch, d_model, heads * source).
        cross_values: float (batch, heads, source, d_v); or
            (batch, heads * source, d_model).
    """

    self_keys: tf.Tensor
    self_values: tf.Tensor
    cross_keys: tf.Tensor
    cross_values: tf.Tensor


class KVCacheState(NamedTuple):
    """What the decoder remembers of a batch of sentences.

    Attributes:
        layers: one cache per decoder layer.
        self_bias: float32 (batch, beam, columns), 0 where a column is of the
            hypothesis's own past, `MASKED` elsewhere.
        places: int32 (batch, columns), the step that a column is for.
        source_bias: float32 (batch, 1, beam, source), hides padding.
    """

    layers: tuple[LayerKVCache, ...]
    self_bias: tf.Tensor
    places: tf.Tensor
    source_bias: tf.Tensor


@dataclass(frozen=True)
class KVCacheSlots:
    """How the columns of self-attention are made, written, hidden and given up.

    A step writes into the caches themselves, so that one state leads to one next
    state. Only when no column is free are they copied, and of them what some
    hypothesis still sees: most hypotheses of a sentence soon have the same past.

    Attributes:
        beam_size: hypotheses per sentence.
        heads: of self-attention.
        radius: earlier steps that a step sees; 0: all.
        is_relative: whether attention asks for `distances`. All sentences have one
            table of them, and so all columns are kept.
    """

    beam_size: int
    heads: int
    radius: int
    is_relative: bool

    def first(
        self, layers: tuple[LayerKVCache, ...], source_bias: tf.Tensor
    ) -> KVCacheState:
        """Returns the state before the first step, of caches with one column.

        That column is hidden and never written: caches that hold the same may be one
        tensor, which TensorFlow's optimizer makes of equal constants. The first step
        copies it, so that each layer has a cache of its own.
        """
        batch = tf.shape(source_bias)[0]
        hidden = tf.fill([batch, self.beam_size, 1], MASKED)
        return KVCacheState(layers, hidden, tf.zeros([batch, 1], tf.int32), source_bias)

    def entered(
        self, state: KVCacheState, index: tf.Tensor
    ) -> tuple[KVCacheState, tf.Tensor]:
        """Makes room for a step, and shows each hypothesis the column that is its own.

        Args:
            state: the state after the step before.
            index: int32 (), the step, one more than the step before.

        Returns:
            The state, and the place of the step's columns, for `written`.
        """
        state, group = self._with_room(state, index)
        columns = tf.range(tf.shape(state.places)[1])
        own = (group * self.beam_size + tf.range(self.beam_size))[:, None]
        self_bias = tf.where(tf.equal(columns, own), 0.0, state.self_bias)
        if self.radius:
            is_far = state.places < index - self.radius
            self_bias = tf.where(is_far[:, None], MASKED, self_bias)
        return state._replace(self_bias=self_bias), self._place(state, group)

    def written(self, cache: tf.Tensor, new: tf.Tensor, place: tf.Tensor) -> tf.Tensor:
        """Writes the columns of a step into the cache itself.

        Copying all of it at each step would take a seventh of the time of a search on
        a CPU, and there TensorFlow's scatter operations copy.

        Args:
            cache: float (batch, heads, columns, d), of which nobody needs the old
                state.
            new: float (batch, heads, beam, d).
            place: from `entered`.

        Returns:
            The cache.
        """
        step = self.beam_size * new.shape[-1]
        # (batch, heads, groups * beam, d) -> (batch * heads * groups, beam * d)
        written = tf.raw_ops.InplaceUpdate(
            x=tf.reshape(cache, [-1, step]), i=place, v=tf.reshape(new, [-1, step])
        )
        return tf.reshape(written, tf.shape(cache))

    def distances(self, state: KVCacheState, index: tf.Tensor) -> tf.Tensor | None:
        """Returns how far columns lie behind a step, int32 (beam, columns), at most 0.

        None where attention is not relative.
        """
        if not self.is_relative:
            return None
        groups = tf.shape(state.places)[1] // self.beam_size
        distances = tf.minimum(tf.range(groups) - index, 0)
        distances = tf.repeat(distances, self.beam_size)
        return tf.tile(distances[None], [self.beam_size, 1])

    def _place(self, state: KVCacheState, group: tf.Tensor) -> tf.Tensor:
        """Returns which `beam_size` columns of each head, int32 (batch * heads,)."""
        batch, columns = tf.unstack(tf.shape(state.places))
        return tf.range(batch * self.heads) * (columns // self.beam_size) + group

    def _with_room(
        self, state: KVCacheState, index: tf.Tensor
    ) -> tuple[KVCacheState, tf.Tensor]:
        """Returns a state that has free columns, and the number of the next group."""
        state = tf.cond(
            tf.equal(index % _STEPS_MORE, 0),
            lambda: self._with_free_columns(state, index),
            lambda: state,
        )
        group = tf.shape(state.places)[1] // self.beam_size - _STEPS_MORE
        return state, group + index % _STEPS_MORE

    def _with_free_columns(self, state: KVCacheState, index: tf.Tensor) -> KVCacheState:
        """Copies the columns that are needed into caches with free ones after them."""
        kept = self._needed(state.self_bias, index)
        more = _STEPS_MORE * self.beam_size
        # A free column may hold anything: it is hidden until it is written.
        columns = tf.pad(kept, [[0, 0], [0, more]])

        def copied(cache: tf.Tensor) -> tf.Tensor:
            return tf.gather(cache, columns, axis=2, batch_dims=1)

        layers = tuple(
            cache._replace(
                self_keys=copied(cache.self_keys), self_values=copied(cache.self_values)
            )
            for cache in state.layers
        )
        self_bias = tf.gather(state.self_bias, kept, axis=2, batch_dims=1)
        free = [[0, 0], [0, 0], [0, more]]
        places = tf.gather(state.places, kept, batch_dims=1)
        steps = tf.repeat(index + tf.range(_STEPS_MORE), self.beam_size)
        steps = tf.tile(steps[None], [tf.shape(kept)[0], 1])
        return state._replace(
            layers=layers,
            self_bias=tf.pad(self_bias, free, constant_values=MASKED),
            places=tf.concat([places, steps], axis=1),
        )

    def _needed(self, self_bias: tf.Tensor, index: tf.Tensor) -> tf.Tensor:
        """Chooses as many columns of each sentence, among them all that are seen.

        Args:
            self_bias: float32 (batch, beam, columns).
            index: int32 (), the step.

        Returns:
            int32 (batch, kept), where kept is a multiple of the beam size.
        """
        is_seen = tf.reduce_any(tf.equal(self_bias, 0.0), axis=1)
        if self.is_relative:
            # All but the one column that is there before the first step.
            is_seen = tf.fill(tf.shape(is_seen), index > 0)
        most = tf.reduce_max(tf.math.count_nonzero(is_seen, axis=1, dtype=tf.int32))
        kept = -(-most // self.beam_size) * self.beam_size
        # Of equals top_k takes the first, so that columns keep their order.
        return tf.math.top_k(tf.cast(is_seen, tf.int32), kept).indices


@dataclass(frozen=True)
class FixedKVCacheSlots(KVCacheSlots):
    """Columns for all steps from the beginning, so that no shape ever changes.

    XLA compiles nothing else. Attention reads all columns at each step, so that it is
    for few steps and few sentences.

    Attributes:
        width: the most steps.
    """

    width: int

    def first(
        self, layers: tuple[LayerKVCache, ...], source_bias: tf.Tensor
    ) -> KVCacheState:
        """Returns the state before the first step, with room for all."""
        batch, columns = tf.shape(source_bias)[0], self.width * self.beam_size
        layers = tuple(
            cache._replace(
                self_keys=tf.repeat(cache.self_keys, columns, axis=2),
                self_values=tf.repeat(cache.self_values, columns, axis=2),
            )
            for cache in layers
        )
        places = tf.repeat(tf.range(self.width), self.beam_size)
        return KVCacheState(
            layers,
            tf.fill([batch, self.beam_size, columns], MASKED),
            tf.tile(places[None], [batch, 1]),
            source_bias,
        )

    def written(self, cache: tf.Tensor, new: tf.Tensor, place: tf.Tensor) -> tf.Tensor:
        """Writes the columns of a step; compiled, into the cache itself."""
        return ops.slice_update(cache, place, new)

    def _place(self, state: KVCacheState, group: tf.Tensor) -> tf.Tensor:
        """Returns where a step begins in a cache, int32 (4,)."""
        return tf.stack([0, 0, group * self.beam_size, 0])

    def _with_room(
        self, state: KVCacheState, index: tf.Tensor
    ) -> tuple[KVCacheState, tf.Tensor]:
        return state, index
