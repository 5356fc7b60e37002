"""State of a `KVCacheDecoder`: the KV cache, and the mask that self-attention uses.

At each step every layer writes the keys and values of each hypothesis into a slot of
the cache, where they stay. Each hypothesis attends to all slots of its sentence, and a
mask hides those that are not its own past. When hypotheses are reordered, only the
masks are reordered, not the keys and values.
"""

from dataclasses import dataclass
from typing import NamedTuple

import tensorflow as tf
from keras import ops

from t2t_repro.fast.thresholds import STEPS_PER_COPY
from t2t_repro.layers.attention import MASKED


class LayerKVCache(NamedTuple):
    """Keys and values of one decoder layer.

    Attributes:
        self_keys: float (batch, heads, slots, d_k). The slots of one step are adjacent,
            from hypothesis 0 on. In a `StaticDecoder`, the last two axes of
            `self_keys` and of unfolded `cross_keys` are exchanged.
        self_values: float (batch, heads, slots, d_v).
        cross_keys: float (batch, heads, source, d_k), once per sentence; or folded by
            `absorbed_attention.fold`, (batch, d_model, heads * source).
        cross_values: float (batch, heads, source, d_v); or folded,
            (batch, heads * source, d_model).
    """

    self_keys: tf.Tensor
    self_values: tf.Tensor
    cross_keys: tf.Tensor
    cross_values: tf.Tensor


class KVCacheState(NamedTuple):
    """State of the decoder for a batch of sentences.

    Attributes:
        layers: One cache per decoder layer.
        self_bias: float32 (batch, beam, slots), 0 where a slot belongs to the past of
            the hypothesis, `MASKED` elsewhere.
        slot_steps: int32 (batch, slots), the decoding step of each slot.
        source_bias: float32 (batch, 1, beam, source), `MASKED` for padding.
    """

    layers: tuple[LayerKVCache, ...]
    self_bias: tf.Tensor
    slot_steps: tf.Tensor
    source_bias: tf.Tensor


@dataclass(frozen=True)
class KVCacheSlots:
    """Allocates, writes and masks the slots of a KV cache that grows.

    A step writes into the cache in place, so a state can be continued only once. The
    cache is copied only when no slot is free. The copy omits the slots that no
    hypothesis attends to, because the hypotheses of a sentence mostly share their past.

    Attributes:
        beam_size: Number of hypotheses per sentence.
        heads: Number of heads of self-attention.
        radius: Number of earlier steps that a step attends to; 0: all.
        is_relative: Whether attention needs `distances`. They are the same for all
            sentences, so all slots are kept.
    """

    beam_size: int
    heads: int
    radius: int
    is_relative: bool

    @property
    def first_steps(self) -> list[int]:
        """Decoding step of each slot in the state before the first step: one slot.

        That slot is masked and never written, because TensorFlow's optimizer may merge
        equal constants, so that several caches share one tensor. The first step copies
        the caches before it writes.
        """
        return [0]

    def initial_state(
        self, layers: tuple[LayerKVCache, ...], source_bias: tf.Tensor
    ) -> KVCacheState:
        """Returns the state before the first step, from caches for `first_steps`."""
        batch, steps = tf.shape(source_bias)[0], self.first_steps
        hidden = tf.fill([batch, self.beam_size, len(steps)], MASKED)
        return KVCacheState(layers, hidden, tf.tile([steps], [batch, 1]), source_bias)

    def begin_step(
        self, state: KVCacheState, index: tf.Tensor
    ) -> tuple[KVCacheState, tf.Tensor]:
        """Adds slots if none is free, and unmasks each hypothesis's slot of this step.

        Args:
            state: The state after the previous step.
            index: int32 (), the index of this step.

        Returns:
            The state, and the position of this step's slots, for `write`.
        """
        state, group = self._find_free_group(state, index)
        slots = tf.range(tf.shape(state.slot_steps)[1])
        own = (group * self.beam_size + tf.range(self.beam_size))[:, None]
        self_bias = tf.where(tf.equal(slots, own), 0.0, state.self_bias)
        if self.radius:
            is_far = state.slot_steps < index - self.radius
            self_bias = tf.where(is_far[:, None], MASKED, self_bias)
        return state._replace(self_bias=self_bias), self._position(state, group)

    def write(self, cache: tf.Tensor, new: tf.Tensor, position: tf.Tensor) -> tf.Tensor:
        """Writes the keys or values of a step into the cache in place.

        On a CPU, TensorFlow's scatter operations copy the whole cache, which would take
        a seventh of the search time.

        Args:
            cache: float (batch, heads, slots, d), which is overwritten.
            new: float (batch, heads, beam, d).
            position: From `begin_step`.

        Returns:
            The cache, float (batch, heads, slots, d).
        """
        step = self.beam_size * new.shape[-1]
        # (batch, heads, groups * beam, d) -> (batch * heads * groups, beam * d)
        updated = tf.raw_ops.InplaceUpdate(
            x=tf.reshape(cache, [-1, step]), i=position, v=tf.reshape(new, [-1, step])
        )
        return tf.reshape(updated, tf.shape(cache))

    def write_keys(
        self, cache: tf.Tensor, new: tf.Tensor, position: tf.Tensor
    ) -> tf.Tensor:
        """Writes the keys of a step; arguments and result are those of `write`."""
        return self.write(cache, new, position)

    def distances(self, state: KVCacheState, index: tf.Tensor) -> tf.Tensor | None:
        """Returns the offset of each slot's step from step `index`, at most 0.

        It is int32 (beam, slots), or None if attention is not relative.
        """
        if not self.is_relative:
            return None
        distances = tf.minimum(state.slot_steps[0] - index, 0)
        return tf.tile(distances[None], [self.beam_size, 1])

    def _position(self, state: KVCacheState, group: tf.Tensor) -> tf.Tensor:
        """Returns the rows that `write` updates for a group: int32 (batch * heads,)."""
        batch, slots = tf.unstack(tf.shape(state.slot_steps))
        return tf.range(batch * self.heads) * (slots // self.beam_size) + group

    def _find_free_group(
        self, state: KVCacheState, index: tf.Tensor
    ) -> tuple[KVCacheState, tf.Tensor]:
        """Returns a state with free slots, and the index of the first free group."""
        state = tf.cond(
            tf.equal(index % STEPS_PER_COPY, 0),
            lambda: self._add_free_slots(state, index),
            lambda: state,
        )
        group = tf.shape(state.slot_steps)[1] // self.beam_size - STEPS_PER_COPY
        return state, group + index % STEPS_PER_COPY

    def _add_free_slots(self, state: KVCacheState, index: tf.Tensor) -> KVCacheState:
        """Copies the slots in use into new caches that end in free slots."""
        used = self._slots_in_use(state.self_bias, index)
        added = STEPS_PER_COPY * self.beam_size
        # The contents of a free slot do not matter: it is masked until it is written.
        slots = tf.pad(used, [[0, 0], [0, added]])

        def copy(cache: tf.Tensor) -> tf.Tensor:
            return tf.gather(cache, slots, axis=2, batch_dims=1)

        layers = tuple(
            cache._replace(
                self_keys=copy(cache.self_keys), self_values=copy(cache.self_values)
            )
            for cache in state.layers
        )
        self_bias = tf.gather(state.self_bias, used, axis=2, batch_dims=1)
        free = [[0, 0], [0, 0], [0, added]]
        slot_steps = tf.gather(state.slot_steps, used, batch_dims=1)
        steps = tf.repeat(index + tf.range(STEPS_PER_COPY), self.beam_size)
        steps = tf.tile(steps[None], [tf.shape(used)[0], 1])
        return state._replace(
            layers=layers,
            self_bias=tf.pad(self_bias, free, constant_values=MASKED),
            slot_steps=tf.concat([slot_steps, steps], axis=1),
        )

    def _slots_in_use(self, self_bias: tf.Tensor, index: tf.Tensor) -> tf.Tensor:
        """Selects the slots that any hypothesis of a sentence attends to.

        Other slots fill up the selection, so that it has the same size for every
        sentence.

        Args:
            self_bias: float32 (batch, beam, slots).
            index: int32 (), the step.

        Returns:
            int32 (batch, selected), where `selected` is a multiple of the beam size.
        """
        is_used = tf.reduce_any(tf.equal(self_bias, 0.0), axis=1)
        if self.is_relative:
            # Keep all slots, except that of `initial_state` before the first step.
            is_used = tf.fill(tf.shape(is_used), index > 0)
        most = tf.reduce_max(tf.math.count_nonzero(is_used, axis=1, dtype=tf.int32))
        selected = -(-most // self.beam_size) * self.beam_size
        # top_k breaks ties by index, so slots keep their order.
        return tf.math.top_k(tf.cast(is_used, tf.int32), selected).indices


@dataclass(frozen=True)
class FixedKVCacheSlots(KVCacheSlots):
    """A KV cache that has slots for all steps from the beginning, as XLA needs.

    Each step attends to all slots, so it suits few steps and few sentences. Keys are
    transposed, (batch, heads, d_k, slots): XLA then multiplies queries by them in a
    third of the time.

    Attributes:
        width: Maximum number of steps.
    """

    width: int

    @property
    def first_steps(self) -> list[int]:
        """Decoding step of each slot: there are slots for all steps."""
        return [slot // self.beam_size for slot in range(self.width * self.beam_size)]

    def write(self, cache: tf.Tensor, new: tf.Tensor, position: tf.Tensor) -> tf.Tensor:
        """Writes the values of a step; XLA does this in place."""
        return ops.slice_update(cache, [0, 0, position, 0], new)

    def write_keys(
        self, cache: tf.Tensor, new: tf.Tensor, position: tf.Tensor
    ) -> tf.Tensor:
        """Transposes and writes the keys of a step, (batch, heads, beam, d_k)."""
        new = tf.linalg.matrix_transpose(new)
        return ops.slice_update(cache, [0, 0, 0, position], new)

    def _position(self, state: KVCacheState, group: tf.Tensor) -> tf.Tensor:
        """Returns the first slot of a step, int32 ()."""
        return group * self.beam_size

    def _find_free_group(
        self, state: KVCacheState, index: tf.Tensor
    ) -> tuple[KVCacheState, tf.Tensor]:
        return state, index
