"""The search for a sentence alone, compiled by XLA."""

from collections.abc import Sequence
from threading import Lock

import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.fast.cached_decoder import generate_prepacked
from t2t_repro.fast.static_decoder import StaticDecoder, halves_of_a_step
from t2t_repro.models.generate import as_one
from t2t_repro.models.transformer import Transformer

# Every length of the source would be compiled by itself; padded, those of a class are
# one. Attention reads places for all steps at each, so that there may not be many.
_LENGTH_STEP = 16
_MOST_STEPS = 256


class CompiledSearch:
    """Finds what `Translator.translate_ids` finds, for one sentence at a time.

    It holds a second copy of the decoder's large matrices, of their values when it was
    made.

    Args:
        models: already built; several translate as one.
        search: how translations are found: beam search by its own rules.

    Raises:
        ValueError: the search is another one.
    """

    def __init__(self, models: Sequence[Transformer], search: DecodingConfig) -> None:
        if search.sampling or search.tensor2tensor_rules:
            raise ValueError("only beam search by its own rules is compiled")
        self._models = models
        self._search = search
        self._halves = [halves_of_a_step(model) for model in models]
        self._compiled: dict[int, tf.types.experimental.ConcreteFunction] = {}
        self._lock = Lock()

    def is_for(self, inputs: tf.Tensor) -> bool:
        """Whether the compiled search can take this batch, int32 (batch, source)."""
        sentences, source = inputs.shape
        return sentences == 1 and self._search.longest(_padded(source)) <= _MOST_STEPS

    def __call__(self, inputs: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Finds what `Translator.translate_ids` finds, for int32 (1, source)."""
        source = _padded(inputs.shape[1])
        padding = source - inputs.shape[1]
        with self._lock:  # Only one thread compiles; the others wait.
            if source not in self._compiled:
                self._compiled[source] = self._function(source)
        return self._compiled[source](tf.pad(inputs, [[0, 0], [0, padding]]))

    def _function(self, source: int) -> tf.types.experimental.ConcreteFunction:
        width = self._search.longest(source)
        decoders = [
            StaticDecoder(model, self._search.hypotheses, width, halves)
            for model, halves in zip(self._models, self._halves, strict=True)
        ]
        decoder = as_one(decoders)

        @tf.function(autograph=False, jit_compile=True)
        def found(inputs: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            result = generate_prepacked(self._search, decoder, inputs, width=width)
            return result.ids, result.scores

        return found.get_concrete_function(tf.TensorSpec([1, source], tf.int32))


def _padded(source: int) -> int:
    """Returns the length that a source of this length is padded to."""
    return -(-source // _LENGTH_STEP) * _LENGTH_STEP
