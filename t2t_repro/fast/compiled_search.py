"""Beam search for a few sentences, compiled by XLA."""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from itertools import chain
from threading import Lock

import tensorflow as tf

from t2t_repro.decoding.candidates import largest_log_prob
from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.fast import xla_kernels
from t2t_repro.fast.cached_decoder import KVCacheDecoder, Memory, matmuls_of_a_step
from t2t_repro.fast.flat_attention import is_quantized
from t2t_repro.fast.small_batch_matmul import StepMatmuls, first_rows
from t2t_repro.fast.static_decoder import StaticDecoder, transpose_step_weights
from t2t_repro.layers.relative import RelativeAttention
from t2t_repro.models.generate import as_one, decoder_of, generate
from t2t_repro.models.precision import has_amx, uses_avx512
from t2t_repro.models.transformer import Transformer

SECONDS_THAT_PAY = 4.0
"""Time that searches of a shape take before a process compiles this search by itself.

Compiling takes 2 to 3 s of processor time, and saves a third of the time of a search or
more."""

# XLA compiles one program per source length, so lengths are padded to a multiple of
# this number.
_LENGTH_MULTIPLE = 32

# Every step attends to the cache slots of all steps, which is slow for long outputs.
_MAX_STEPS = 256

_Shape = tuple[int, int]
"""Number of sentences and padded source length of a compiled program."""


class CompiledSearch:
    """Replaces `Translator.translate_ids` for batches of a few sentences.

    It copies the decoder's large matrices before it compiles for the first time. If
    they change later, it is no longer used.

    Args:
        models: Models, already built; several form an ensemble.
        search: Settings of the beam search.
        compile_after: Time in seconds that another search may take for batches of one
            shape, before a thread compiles the search for this shape. 0: each shape is
            compiled when it is first used.

    Attributes:
        most_together: The first result of `most_sentences`.

    Raises:
        ValueError: The settings select sampling or `tensor2tensor_rules`.
    """

    def __init__(
        self,
        models: Sequence[Transformer],
        search: DecodingConfig,
        compile_after: float = 0.0,
    ) -> None:
        if search.sampling or search.tensor2tensor_rules:
            raise ValueError(
                "CompiledSearch supports neither sampling nor tensor2tensor_rules; "
                "search without it"
            )
        self._models = models
        self._search = search
        self._compile_after = compile_after
        self._seconds: dict[_Shape, float] = {}
        self._compiled: dict[_Shape, Future[None]] = {}
        self._one_at_a_time = Lock()
        # At exit, Python waits for the thread, because XLA cannot be interrupted.
        self._thread = ThreadPoolExecutor(1)
        attentions = (model.decoder.layer_0.self_attention for model in models)
        most = most_sentences(any(map(is_quantized, attentions)))
        self.most_together, self._most_per_core = most
        self._matmuls: list[StepMatmuls] = []
        if not compile_after:
            self._copy_weights()

    def add(self, sentences: int, source: int, seconds: float) -> None:
        """Adds the time of another search; may start to compile for the same shape.

        Args:
            sentences: Number of sentences.
            source: Number of tokens of the longest source.
            seconds: Time that the other search took.
        """
        shape = sentences, _padded_length(source)
        ready_for, _ = self._ready_shape(*shape) or (0, 0)
        if ready_for == sentences or not self._is_supported(shape):
            return
        # The first search of a process also traces, which is not repeated.
        total = self._seconds[shape] + seconds if shape in self._seconds else 0.0
        self._seconds[shape] = total
        if total > self._compile_after and shape not in self._compiled:
            self._compiled[shape] = self._thread.submit(self._compile, shape)

    def is_ready(self, sentences: int, source: int) -> bool:
        """Returns whether this search can translate a batch; arguments as in `add`."""
        is_compiled = self._ready_shape(sentences, source) is not None
        return is_compiled and (not self._compile_after or self._is_up_to_date())

    def is_parallel(self, sentences: int) -> bool:
        """Returns whether several searches of this size should run at once."""
        return sentences <= self._most_per_core and not self._may_crash(sentences)

    def wait(self) -> None:
        """Waits until all programs that the thread has begun are compiled."""
        wait(self._compiled.values())

    def __call__(self, inputs: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Translates sentences, int32 (batch, source), to ids and scores.

        The results are those of `Translator.translate_ids`. `is_ready` must be true.
        Several threads may call it.
        """
        sentences, _ = inputs.shape
        inputs = _padded(inputs, *self._ready_shape(*inputs.shape) or inputs.shape)
        memories = self._read(inputs)
        # A direct call would warn that it is traced again for every length.
        search = self._search_memories.get_concrete_function(inputs, memories)
        may_crash = self._may_crash(inputs.shape[0])
        with self._one_at_a_time if may_crash else nullcontext():
            ids, scores = search(inputs, memories)
        return ids[:sentences], scores[:sentences]

    def _is_supported(self, shape: _Shape) -> bool:
        sentences, length = shape
        is_short = self._search.longest(length) <= _MAX_STEPS
        is_fast = sentences <= self.most_together or self.is_parallel(sentences)
        return is_short and is_fast

    def _ready_shape(self, sentences: int, source: int) -> _Shape | None:
        """Returns the shape to pad a batch to; None if no program is compiled."""
        shortest = _padded_length(source)
        if not self._compile_after:
            shape = sentences, shortest
            return shape if self._is_supported(shape) else None
        shapes = [
            (rows, length)
            for (rows, length), compiled in self._compiled.copy().items()
            # The last of several parallel batches may have a sentence less.
            if sentences == rows or (sentences == rows - 1 and self.is_parallel(rows))
            if shortest <= length <= 2 * shortest
            # After an error, the other search continues.
            if compiled.done() and not compiled.exception()
        ]
        return min(shapes, default=None)

    def _compile(self, shape: _Shape) -> None:
        """Compiles the search for a shape, by translating empty sentences."""
        if self._is_exiting():
            return
        if not self._matmuls:
            self._copy_weights()
        inputs = _padded(tf.ones([1, 1], tf.int32), *shape)
        memories = self._read(inputs)
        search = self._search_memories.get_concrete_function(inputs, memories)
        if not self._is_exiting():
            search(inputs, memories)

    def _may_crash(self, sentences: int) -> bool:
        """Returns whether a program may contain large float32 reductions.

        XLA uses YNNPACK for them (see `xla_kernels.maximum`). In other programs, layer
        normalization has the largest float32 reduction.
        """
        model = self._models[0]
        elements = sentences * self._search.hypotheses * model.d_model
        attention = model.decoder.layer_0.self_attention
        softmax = largest_log_prob.implementation
        return (
            elements >= xla_kernels.LARGE_REDUCTION
            or len(self._models) > 1
            or self._search.no_repeat_ngram > 0
            or isinstance(attention, RelativeAttention)
            or softmax is not xla_kernels.largest_log_prob
        )

    def _is_exiting(self) -> bool:
        """Returns whether the process is about to exit, and waits for the thread."""
        try:
            self._thread.submit(bool)
        except RuntimeError:  # At exit, an executor accepts no more work.
            return True
        return False

    def _copy_weights(self) -> None:
        """Copies the weights of the matmuls of a step."""
        self._copied_rows = self._first_rows()
        self._matmuls = [transpose_step_weights(model) for model in self._models]

    def _is_up_to_date(self) -> bool:
        """Returns whether the weights are still those that were copied."""
        return bool(tf.reduce_all(tf.equal(self._copied_rows, self._first_rows())))

    @tf.function(autograph=False)
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
    def _search_memories(
        self, inputs: tf.Tensor, memories: Sequence[Memory]
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Implements `__call__`; traced and compiled once per shape."""
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


def most_sentences(is_int8: bool) -> tuple[int, int]:
    """Returns up to how many sentences the compiled search is the faster one.

    The numbers were measured on two cores (docs/speed.md). With more sentences, matmuls
    take most of the time, and sentences that are done would have to leave the batch.

    Args:
        is_int8: Whether the matmuls of the search are in int8.

    Returns:
        The number of sentences of one search, whose matmuls use all cores, and the
        number for each of several parallel searches, one per core.
    """
    if not uses_avx512():
        return (1, 2) if is_int8 else (4, 8)
    # XLA multiplies the rows of one sentence in int8 as fast as oneDNN, which is faster
    # for more rows. Two searches at once are faster with XLA on Intel only.
    return (1, int(has_amx())) if is_int8 else (4, 4)


def seconds_that_pay(model: Transformer, search: DecodingConfig) -> float | None:
    """Returns `compile_after` for a model that translates a few sentences at a time.

    None if compiling is impossible, or its benefit is unknown.
    """
    is_measured = (
        decoder_of.implementation is KVCacheDecoder
        and model.compute_dtype == "float32"
        and not tf.config.list_physical_devices("GPU")
    )
    is_possible = not (search.sampling or search.tensor2tensor_rules)
    return SECONDS_THAT_PAY if is_measured and is_possible else None


def _padded(inputs: tf.Tensor, rows: int, length: int) -> tf.Tensor:
    """Pads sentences to a length, and the batch by repeating its last sentence."""
    inputs = tf.gather(inputs, tf.minimum(tf.range(rows), len(inputs) - 1))
    return tf.pad(inputs, [[0, 0], [0, length - inputs.shape[1]]])


def _padded_length(source: int) -> int:
    """Rounds a source length up to the next length that is compiled."""
    return -(-source // _LENGTH_MULTIPLE) * _LENGTH_MULTIPLE
