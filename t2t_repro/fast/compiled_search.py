"""Beam search for a few sentences, compiled by XLA."""

from collections.abc import Sequence
from contextlib import nullcontext
from itertools import chain
from threading import Lock

import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.fast import uses, xla_kernels
from t2t_repro.fast.cached_decoder import KVCacheDecoder, Memory, matmuls_of_a_step
from t2t_repro.fast.flat_attention import is_quantized
from t2t_repro.fast.small_batch_matmul import StepMatmuls, first_rows
from t2t_repro.fast.static_decoder import StaticDecoder, transpose_step_weights
from t2t_repro.fast.thresholds import LENGTH_MULTIPLE, MAX_COMPILED_STEPS
from t2t_repro.layers.relative import RelativeAttention
from t2t_repro.models.generate import combine_decoders, generate
from t2t_repro.models.searcher import Found
from t2t_repro.models.transformer import Transformer

Shape = tuple[int, int]
"""Number of sentences and padded source length of a compiled program."""


class CompiledSearch:
    """Programs that search for a few sentences, one program per shape.

    They read copies of the decoder's large matrices, which the first program makes.

    Args:
        models: Models, already built; several form an ensemble.
        search: Settings of the beam search.

    Attributes:
        is_int8: Whether the matmuls of the search are in int8.
    """

    def __init__(self, models: Sequence[Transformer], search: DecodingConfig) -> None:
        self._models, self._search = models, search
        self._one_at_a_time = Lock()
        self._matmuls: list[StepMatmuls] = []
        self._divides_softmax = uses("top_k")
        attentions = (model.decoder.layer_0.self_attention for model in models)
        self.is_int8 = any(map(is_quantized, attentions))

    def __call__(self, inputs: tf.Tensor, shape: Shape) -> Found:
        """Searches for sentences, int32 (batch, source), with the program of a shape.

        The shape is at least that of the inputs; its program is compiled if it is
        missing. The results are those of `Searcher.search`. Several threads may call
        the method.
        """
        sentences = len(inputs)
        if not self._matmuls:
            self.copy_weights()
        inputs = _pad(inputs, *shape)
        # Direct calls would log that the functions are traced for every length, or for
        # many models.
        memories = self._read.get_concrete_function()(inputs)
        search = self._search_memories.get_concrete_function(inputs, memories)
        with self._one_at_a_time if self.may_crash(shape[0]) else nullcontext():
            ids, scores = search(inputs, memories)
        return ids[:sentences], scores[:sentences]

    def copy_weights(self) -> None:
        """Copies the weights of the matmuls of a step."""
        self._copied_rows = self._read_first_rows()
        self._matmuls = [transpose_step_weights(model) for model in self._models]

    def is_up_to_date(self) -> bool:
        """Returns whether the weights are still those that were copied."""
        rows = self._read_first_rows()
        return bool(tf.reduce_all(tf.equal(self._copied_rows, rows)))

    def is_short(self, length: int) -> bool:
        """Returns whether the outputs for a source length are short enough."""
        return self._search.longest(length) <= MAX_COMPILED_STEPS

    def may_crash(self, sentences: int) -> bool:
        """Returns whether a program may contain large float32 reductions.

        XLA uses YNNPACK for them (see `xla_kernels.maximum`), which several programs
        must not do at once. In other programs, layer normalization has the largest
        float32 reduction.
        """
        model = self._models[0]
        elements = sentences * self._search.hypotheses * model.d_model
        attention = model.decoder.layer_0.self_attention
        return (
            elements >= xla_kernels.LARGE_REDUCTION
            or len(self._models) > 1
            or self._search.no_repeat_ngram > 0
            or isinstance(attention, RelativeAttention)
            or not self._divides_softmax
        )

    def _read_first_rows(self) -> tf.Tensor:
        return self._first_rows.get_concrete_function()()

    @tf.function(input_signature=(), autograph=False)
    def _first_rows(self) -> tf.Tensor:
        """Returns rows of all copied weights; see `first_rows`."""
        groups = chain.from_iterable(map(matmuls_of_a_step, self._models))
        return first_rows([*groups])

    @tf.function(
        autograph=False, input_signature=[tf.TensorSpec([None, None], tf.int32)]
    )
    def _read(self, inputs: tf.Tensor) -> list[Memory]:
        """Runs the encoders, which XLA does not compile."""
        beam = self._search.hypotheses
        return [KVCacheDecoder(model, beam).read(inputs) for model in self._models]

    @tf.function(autograph=False, jit_compile=True)
    def _search_memories(self, inputs: tf.Tensor, memories: Sequence[Memory]) -> Found:
        """Implements the search; traced and compiled once per shape."""
        width = self._search.longest(inputs.shape[1])
        decoders = [
            StaticDecoder(model, self._search.hypotheses, width, matmuls, memory)
            for model, matmuls, memory in zip(
                self._models, self._matmuls, memories, strict=True
            )
        ]
        # The weights are already in the layout for XLA; `generate` would prepack them.
        result = generate.reference(
            self._search, combine_decoders(decoders), inputs, width=width
        )
        return result.ids, result.scores


def _pad(inputs: tf.Tensor, rows: int, length: int) -> tf.Tensor:
    """Pads sentences to a length, and the batch by repeating its last sentence."""
    inputs = tf.gather(inputs, tf.minimum(tf.range(rows), len(inputs) - 1))
    return tf.pad(inputs, [[0, 0], [0, length - inputs.shape[1]]])


def pad_length(source: int) -> int:
    """Rounds a source length up to the next length that is compiled."""
    return -(-source // LENGTH_MULTIPLE) * LENGTH_MULTIPLE
