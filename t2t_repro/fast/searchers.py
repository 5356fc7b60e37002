"""Faster searchers for a CPU: parallel batches, and programs compiled by XLA."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial

import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.fast import is_installed, uses
from t2t_repro.fast.compiled_search import CompiledSearch, Shape, pad_length
from t2t_repro.fast.parallel_batches import batches_at_once
from t2t_repro.fast.shared_copies import Copies, SharedCopies, use_copies
from t2t_repro.fast.thresholds import few_sentences
from t2t_repro.models.searcher import (
    EncodedBatch,
    Found,
    Searcher,
    convert_to_tensors,
)
from t2t_repro.models.transformer import Transformer
from t2t_repro.system.malloc import release_freed_memory
from t2t_repro.tokenizers.tokenizer import Tokenizer


def fastest_searcher(
    models: Sequence[Transformer],
    tokenizer: Tokenizer,
    config: DecodingConfig,
    compile_after: float | None = None,
) -> Searcher:
    """Returns the fastest searcher for the installed implementations.

    Args:
        models: Built model, or the models of an ensemble.
        tokenizer: Tokenizer of the models.
        config: Settings of the search.
        compile_after: See `CompiledSearcher`; None: XLA does not compile the search.
    """
    if compile_after is not None:
        return CompiledSearcher(models, tokenizer, config, compile_after)
    kind = ParallelSearcher if is_installed() else Searcher
    return kind(models, tokenizer, config)


class ParallelSearcher(Searcher):
    """Searches for several batches at once on a CPU, one core per batch.

    The searches of one call share copies of the weights (see `SharedCopies`).
    """

    def __init__(
        self,
        models: Sequence[Transformer],
        tokenizer: Tokenizer,
        config: DecodingConfig,
    ) -> None:
        super().__init__(models, tokenizer, config)
        self._lock = threading.Lock()
        self._optimized: set[Callable[..., Found]] = set()

    def batch_size(self, lengths: Sequence[int], most: int, constrained: bool) -> int:
        """Returns the batch size that gives every core a batch, at most `most`."""
        return max(1, min(most, -(-len(lengths) // batches_at_once())))

    def search_all(self, batches: Sequence[EncodedBatch], most: int) -> Iterator[Found]:
        """Yields the result of each batch; see `Searcher.search_all`."""
        copies = None
        if uses("prepacked_weights"):
            rows = max((len(batch.inputs) for batch in batches), default=0)
            copies = SharedCopies(self.decoder, rows)
        with ThreadPoolExecutor(batches_at_once()) as pool:
            yield from pool.map(partial(self.search_batch, copies), batches)

    def search_batch(self, copies: SharedCopies | None, batch: EncodedBatch) -> Found:
        """Searches for a batch, with copies of the weights."""
        if copies is None:
            return self.search(*batch)
        shared = copies.copy_weights(len(batch.inputs))
        tensors, types = convert_to_tensors(batch)
        kinds = tf.nest.map_structure(
            lambda matrix: tf.TensorSpec([None, None], matrix.dtype), shared
        )
        search = self._search_with_copies.get_concrete_function(*types, kinds)
        self._optimize(search, tensors, shared)
        return search(*tensors, *tf.nest.flatten(shared))

    @tf.function(autograph=False)
    def _search_with_copies(
        self,
        inputs: tf.Tensor,
        prefixes: tf.Tensor | None,
        terms: tf.Tensor | None,
        copies: Copies,
    ) -> Found:
        """Implements `search_batch`; traced once per combination of arguments."""
        decoder = use_copies(self.decoder, copies)
        return self.search_with(decoder, EncodedBatch(inputs, prefixes, terms))

    def _optimize(
        self, search: Callable[..., Found], batch: Sequence[tf.Tensor], copies: Copies
    ) -> None:
        """Calls a traced search without sentences, unless it was called before.

        TensorFlow optimizes a graph at its first call. Parallel first calls would each
        optimize it, which takes seconds of processor time. Optimizing the graph of a
        search also leaves 50 MB of freed memory, which glibc would keep during the
        search.
        """
        with self._lock:
            if search not in self._optimized:
                search(*(rows[:0] for rows in batch), *tf.nest.flatten(copies))
                release_freed_memory()
                self._optimized.add(search)


class CompiledSearcher(ParallelSearcher):
    """Searches for batches of a few sentences with programs compiled by XLA.

    Larger batches, and those with prefixes or terms, are searched as by
    `ParallelSearcher`. The programs copy the decoder's large matrices when the first
    one is compiled. If a matrix changes later, the programs are no longer used.

    Args:
        models: Models, already built; several form an ensemble.
        tokenizer: Tokenizer of the models.
        config: Settings of the beam search, without sampling and
            `tensor2tensor_rules`.
        compile_after: Time in seconds that other searches may take for batches of one
            shape, before a thread compiles a program for this shape. 0: each shape is
            compiled when it is first used, and the weights must not change.
    """

    def __init__(
        self,
        models: Sequence[Transformer],
        tokenizer: Tokenizer,
        config: DecodingConfig,
        compile_after: float = 0.0,
    ) -> None:
        super().__init__(models, tokenizer, config)
        self._compile_after = compile_after
        self._search_few = CompiledSearch(models, config)
        self._few = few_sentences(self._search_few.is_int8)
        self._seconds: dict[Shape, float] = {}
        self._compiled: dict[Shape, Future[None]] = {}
        # At exit, Python waits for the thread, because XLA cannot be interrupted.
        self._thread = ThreadPoolExecutor(1)
        if not compile_after:
            self._search_few.copy_weights()

    def batch_size(self, lengths: Sequence[int], most: int, constrained: bool) -> int:
        """Returns the batch size of a compiled program if one is ready."""
        if len(lengths) and not constrained:
            rows = self.rows_of_few(len(lengths), most)
            if self.find_program(rows, int(lengths[0])):
                return rows
        return super().batch_size(lengths, most, constrained)

    def search_all(self, batches: Sequence[EncodedBatch], most: int) -> Iterator[Found]:
        """Yields the result of each batch, and may start to compile for their shape."""
        start = time.monotonic()
        yield from super().search_all(batches, most)
        constrained = any(each is not None for batch in batches for each in batch[1:])
        if self._compile_after and batches and not constrained:
            sentences = sum(len(batch.inputs) for batch in batches)
            rows = self.rows_of_few(sentences, most)
            self.add(rows, batches[0].inputs.shape[1], time.monotonic() - start)

    def search_batch(self, copies: SharedCopies | None, batch: EncodedBatch) -> Found:
        """Searches for a batch, with a compiled program if possible."""
        inputs, prefixes, terms = batch
        shape = None
        if prefixes is None and terms is None:
            shape = self.find_program(*inputs.shape)
        if shape is None:
            return super().search_batch(copies, batch)
        return self._search_few(inputs, shape)

    def rows_of_few(self, sentences: int, most: int) -> int:
        """Returns the batch size for compiled programs.

        A few sentences are one batch, whose matmuls use all cores; more are divided if
        several programs at once are faster.
        """
        rows = super().batch_size(range(sentences), most, constrained=False)
        together = min(most, self._few.together)
        return rows if sentences > together and self._is_parallel(rows) else sentences

    def find_program(self, sentences: int, source: int) -> Shape | None:
        """Returns the shape of the program for a batch; None if none is ready.

        Args:
            sentences: Number of sentences.
            source: Number of tokens of the longest source.
        """
        shape = self._find_shape(sentences, pad_length(source))
        if self._compile_after and shape and not self._search_few.is_up_to_date():
            return None
        return shape

    def _find_shape(self, sentences: int, shortest: int) -> Shape | None:
        """Returns the shape of the program for sentences of a padded length."""
        if not self._compile_after:
            shape = sentences, shortest
            return shape if self._is_supported(shape) else None
        shapes = [
            (rows, length)
            for (rows, length), compiled in self._compiled.copy().items()
            # The last of several parallel batches may have a sentence less.
            if sentences == rows or (sentences == rows - 1 and self._is_parallel(rows))
            if shortest <= length <= 2 * shortest
            # After an error, the other search continues.
            if compiled.done() and not compiled.exception()
        ]
        return min(shapes, default=None)

    def add(self, sentences: int, source: int, seconds: float) -> None:
        """Adds the time of another search; may start to compile for the same shape.

        The arguments are those of `find_program`, and the time in seconds.
        """
        shape = sentences, pad_length(source)
        ready = self._find_shape(*shape)
        if (ready and ready[0] == sentences) or not self._is_supported(shape):
            return
        # The first search of a process also traces, which is not repeated.
        total = self._seconds[shape] + seconds if shape in self._seconds else 0.0
        self._seconds[shape] = total
        if total > self._compile_after and shape not in self._compiled:
            self._compiled[shape] = self._thread.submit(self._compile, shape)

    def wait(self) -> None:
        """Waits until all programs that the thread has begun are compiled."""
        wait(self._compiled.values())

    def _compile(self, shape: Shape) -> None:
        """Compiles the program of a shape, by translating empty sentences."""
        if not self._is_exiting():
            self._search_few(tf.ones([1, 1], tf.int32), shape)

    def _is_exiting(self) -> bool:
        """Returns whether the process is about to exit, and waits for the thread."""
        try:
            self._thread.submit(bool)
        except RuntimeError:  # At exit, an executor accepts no more work.
            return True
        return False

    def _is_supported(self, shape: Shape) -> bool:
        sentences, length = shape
        is_fast = sentences <= self._few.together or self._is_parallel(sentences)
        return is_fast and self._search_few.is_short(length)

    def _is_parallel(self, sentences: int) -> bool:
        """Returns whether several programs of this size should run at once."""
        return sentences <= self._few.per_core and not self._search_few.may_crash(
            sentences
        )
