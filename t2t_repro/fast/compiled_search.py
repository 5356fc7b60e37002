"""Beam search for single sentences, compiled by XLA."""

from collections import Counter
from collections.abc import Sequence

import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.fast.cached_decoder import KVCacheDecoder, Memory
from t2t_repro.fast.static_decoder import StaticDecoder, transpose_step_weights
from t2t_repro.models.generate import as_one, generate
from t2t_repro.models.transformer import Transformer

# XLA compiles one program per source length, so lengths are padded to a multiple of
# this number.
_LENGTH_MULTIPLE = 16

# Every step attends to the cache slots of all steps, which is slow for long outputs.
_MAX_STEPS = 256


class CompiledSearch:
    """Replaces `Translator.translate_ids` for single sentences.

    It copies the decoder's large matrices when it is created, and ignores later changes
    of the weights.

    Args:
        models: Models, already built; several form an ensemble.
        search: Settings of the beam search.
        compile_after: Number of sentences of each padded length that are left to
            another search, before the search for this length is compiled.

    Raises:
        ValueError: The settings select sampling or `tensor2tensor_rules`.
    """

    def __init__(
        self,
        models: Sequence[Transformer],
        search: DecodingConfig,
        compile_after: int = 0,
    ) -> None:
        if search.sampling or search.tensor2tensor_rules:
            raise ValueError(
                "CompiledSearch supports neither sampling nor tensor2tensor_rules; "
                "search without it"
            )
        self._models = models
        self._search = search
        self._compile_after = compile_after
        self._sentences: Counter[int] = Counter()  # By padded length.
        self._matmuls = [transpose_step_weights(model) for model in models]

    def is_for(self, inputs: tf.Tensor) -> bool:
        """Counts a batch, int32 (batch, source); returns whether this search is for it.

        It is for one sentence of a length that is, or may now be, compiled.
        """
        length = _padded_length(inputs.shape[1])
        if inputs.shape[0] != 1 or self._search.longest(length) > _MAX_STEPS:
            return False
        self._sentences[length] += 1
        return self._sentences[length] > self._compile_after

    def __call__(self, inputs: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Translates a sentence, int32 (1, source), to ids and scores."""
        padding = _padded_length(inputs.shape[1]) - inputs.shape[1]
        inputs = tf.pad(inputs, [[0, 0], [0, padding]])
        memories = self._read(inputs)
        # A direct call would warn that it is traced again for every length.
        search = self._search_memories.get_concrete_function(inputs, memories)
        return search(inputs, memories)

    @tf.function(
        autograph=False, input_signature=[tf.TensorSpec([None, None], tf.int32)]
    )
    def _read(self, inputs: tf.Tensor) -> list[Memory]:
        """Runs the encoders, which XLA does not compile."""
        beam = self._search.hypotheses
        return [KVCacheDecoder(model, beam).read(inputs) for model in self._models]

    @tf.function(autograph=False, jit_compile=True)
    def _search_memories(
        self, inputs: tf.Tensor, memories: Sequence[Memory]
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Implements `__call__`; traced and compiled once per padded length."""
        width = self._search.longest(inputs.shape[1])
        decoders = [
            StaticDecoder(model, self._search.hypotheses, width, matmuls, memory)
            for model, matmuls, memory in zip(
                self._models, self._matmuls, memories, strict=True
            )
        ]
        # The weights are already in the layout for XLA; `generate` would prepack them.
        result = generate.reference(self._search, as_one(decoders), inputs, width=width)
        return result.ids, result.scores


def _padded_length(source: int) -> int:
    """Rounds a source length up to the next length that is compiled."""
    return -(-source // _LENGTH_MULTIPLE) * _LENGTH_MULTIPLE
