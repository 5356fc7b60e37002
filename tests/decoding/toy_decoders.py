"""Decoders small enough for exhaustive search, and the same functions in NumPy."""

import itertools

import numpy as np
import tensorflow as tf

from t2t_repro.decoding.decoder import State

PAD, EOS = 0, 1


class TableDecoder:
    """Decoder whose logits depend only on the last token.

    The state is float32 (batch, vocab, vocab), the logits after each token.
    """

    def step(
        self, ids: tf.Tensor, index: tf.Tensor, state: State
    ) -> tuple[tf.Tensor, State]:
        return tf.gather(state, ids, batch_dims=1), state

    def select_beams(self, state: State, parents: tf.Tensor) -> State:
        return state

    def select_sentences(self, state: State, keep: tf.Tensor) -> State:
        return tf.gather(state, keep)


class MemoryDecoder:
    """Decoder whose logits depend on all previous tokens, through a fading memory.

    A hypothesis with a wrong parent gets other logits, so that tests detect it. The
    state grows by one row per step, like a cache.
    """

    def __init__(self, vocab_size: int, depth: int = 6, seed: int = 1) -> None:
        draw = np.random.default_rng(seed)
        self.vocab_size = vocab_size
        self.embedding = draw.normal(size=(vocab_size, depth)).astype("float32")
        self.output = draw.normal(size=(depth, vocab_size)).astype("float32") * 1.5
        # Makes short translations likely.
        self.bias = np.where(np.arange(vocab_size) == EOS, 1.5, 0).astype("float32")

    def sources(self, batch: int, seed: int = 2) -> np.ndarray:
        """Returns random vectors that replace sentences: float32 (batch, depth)."""
        draw = np.random.default_rng(seed)
        return draw.normal(size=(batch, self.output.shape[0])).astype("float32")

    def start(self, sources: tf.Tensor, beam_size: int) -> State:
        sources = tf.convert_to_tensor(sources)
        rows, depth = tf.shape(sources)[0], sources.shape[1]
        return {"source": sources, "past": tf.zeros([rows, beam_size, 0, depth])}

    def step(
        self, ids: tf.Tensor, index: tf.Tensor, state: State
    ) -> tuple[tf.Tensor, State]:
        new = tf.gather(self.embedding, ids)[:, :, None]
        past = tf.concat([state["past"], new], axis=2)
        ages = tf.cast(index - tf.range(index + 1), tf.float32)
        memory = tf.reduce_sum(past * tf.pow(0.7, ages)[:, None], axis=2)
        logits = tf.tanh(memory + state["source"][:, None]) @ self.output + self.bias
        logits.set_shape([None, None, self.vocab_size])
        return logits, {"source": state["source"], "past": past}

    def select_beams(self, state: State, parents: tf.Tensor) -> State:
        past = tf.gather(state["past"], parents, batch_dims=1)
        return {"source": state["source"], "past": past}

    def select_sentences(self, state: State, keep: tf.Tensor) -> State:
        return tf.nest.map_structure(lambda tensor: tf.gather(tensor, keep), state)

    def log_probs(self, source: np.ndarray, prefix: tuple[int, ...]) -> np.ndarray:
        """Returns the log probabilities after `prefix`, in float64: (vocab,)."""
        memory = np.zeros_like(source, dtype="float64")
        for token in (0, *prefix):
            memory = 0.7 * memory + self.embedding[token]
        logits = np.tanh(memory + source) @ self.output.astype("float64") + self.bias
        return logits - np.log(np.exp(logits).sum())

    def score(self, source: np.ndarray, ids: tuple[int, ...], alpha: float) -> float:
        """Returns the log probability of `ids`, divided by the length penalty."""
        total = sum(
            self.log_probs(source, ids[:i])[token] for i, token in enumerate(ids)
        )
        return total / ((5 + len(ids)) / 6) ** alpha

    def exhaustive(
        self, source: np.ndarray, limit: int, alpha: float
    ) -> list[tuple[float, tuple[int, ...]]]:
        """Lists every translation that ends within the limit, best first."""
        tokens = range(2, self.vocab_size)
        translations = [
            (*body, EOS)
            for length in range(limit)
            for body in itertools.product(tokens, repeat=length)
        ]
        scored = [(self.score(source, ids, alpha), ids) for ids in translations]
        return sorted(scored, reverse=True)

    def greedy(self, source: np.ndarray, limit: int) -> tuple[int, ...]:
        """Appends the best token except PAD until EOS or the limit."""
        ids: tuple[int, ...] = ()
        while len(ids) < limit and EOS not in ids:
            best = 1 + int(np.argmax(self.log_probs(source, ids)[1:]))
            ids = (*ids, best)
        return ids


SMALL = MemoryDecoder(vocab_size=5)
LARGER = MemoryDecoder(vocab_size=12)
