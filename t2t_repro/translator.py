"""Text to text: tokenizer, model and beam search as one graph.

The same object translates for `translate`, `evaluate`, the validation during
training and the exported SavedModel: what is scored is what is served.
"""

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from t2t_repro.data.tokenizer import EOS_ID, Tokenizer
from t2t_repro.decoding.beam_search import beam_search
from t2t_repro.models.cached_decoder import CachedDecoder
from t2t_repro.models.transformer import Transformer, named_variables

MAX_INPUT_LENGTH = 512
# No line is read further: a tokenizer's memory grows with its text. Were a subword
# 128 characters long, this would still be MAX_INPUT_LENGTH subwords.
MOST_CHARACTERS = 65_536
# A window of longer lines than people write has fewer of them.
_MOST_WINDOW_CHARACTERS = 1 << 22
# Bounds the memory on machines of many cores.
_MOST_BATCHES_AT_ONCE = 16

# What Python calls space, for the graph and for lists of lines alike.
BLANK = r"[\x09-\x0d\x1c-\x1f\x{85}\p{Z}]*"


class Hypothesis(NamedTuple):
    """One of the translations that were found for a sentence.

    Attributes:
        text: the translation.
        score: its log probability over the length penalty.
        tokens: its subwords, EOS included.
    """

    text: str
    score: float
    tokens: int


class Translation(NamedTuple):
    """One sentence's translation.

    Attributes:
        text: the translation, the best that was found.
        score: its log probability over the length penalty; 0 for an empty line.
        tokens: subwords of the translation, EOS included.
        cut: whether the source was longer than the translator reads.
        others: the next best, best first: at most one fewer than `nbest`.
    """

    text: str
    score: float
    tokens: int
    cut: bool
    others: tuple[Hypothesis, ...] = ()


class Translator(tf.Module):
    """Translates batches of raw strings.

    Args:
        model: the model, already built.
        tokenizer: its vocabulary.
        beam_size: hypotheses per sentence; 1 is greedy.
        alpha: exponent of the length penalty.
        extra_length: an output ends at the input's length, EOS included, plus this.
        max_input_length: longer inputs are cut to as many subwords, so that no
            sentence can exhaust memory.
        nbest: hypotheses to find for each sentence, at most `beam_size`. The best is
            the same whatever their number; the search for more takes longer.
        tensor2tensor_rules: search exactly as tensor2tensor does: one limit and one
            stop rule for a batch, so that a translation may depend on its neighbours,
            and the plain log probability as the score of what did not end.

    Raises:
        ValueError: `nbest` is out of range.
    """

    def __init__(
        self,
        model: Transformer,
        tokenizer: Tokenizer,
        *,
        beam_size: int = 4,
        alpha: float = 0.6,
        extra_length: int = 50,
        max_input_length: int = MAX_INPUT_LENGTH,
        nbest: int = 1,
        tensor2tensor_rules: bool = False,
    ) -> None:
        super().__init__()
        if not 1 <= nbest <= beam_size:
            raise ValueError(f"nbest is {nbest}, must be 1 to {beam_size}")
        self.tokenizer = tokenizer
        self.beam_size = beam_size
        self.alpha = alpha
        self.extra_length = extra_length
        self.max_input_length = max_input_length
        self.nbest = nbest
        self.tensor2tensor_rules = tensor2tensor_rules
        self.model_variables = [v.value for v in named_variables(model).values()]
        self._decoder = CachedDecoder(model, beam_size)

    def searching(self, nbest: int, tensor2tensor_rules: bool) -> "Translator":
        """Returns a translator of the same model that searches otherwise.

        Args:
            nbest: hypotheses for each sentence, 1 to `beam_size`.
            tensor2tensor_rules: see the class.

        Raises:
            ValueError: `nbest` is out of range.
        """
        return Translator(
            self._decoder.model,
            self.tokenizer,
            beam_size=self.beam_size,
            alpha=self.alpha,
            extra_length=self.extra_length,
            max_input_length=self.max_input_length,
            nbest=nbest,
            tensor2tensor_rules=tensor2tensor_rules,
        )

    def fingerprint(self) -> str:
        """Identifies the weights and the vocabulary: SHA-256 in hexadecimal."""
        digest = hashlib.sha256(self.tokenizer.fingerprint.encode())
        for variable in self.model_variables:
            # As bytes: hashlib knows no bfloat16.
            digest.update(np.ascontiguousarray(variable.numpy()).view(np.uint8).data)
        return digest.hexdigest()

    @tf.function(
        input_signature=[tf.TensorSpec([None, None], tf.int32)], autograph=False
    )
    def translate_ids(self, inputs: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Searches the translations of encoded sentences.

        Args:
            inputs: int32 (batch, source), ending in EOS, 0-padded.

        Returns:
            ids, int32 (batch, beam, target), best first, 0-padded after EOS, and
            scores, float32 (batch, beam). The first `nbest` are final.
        """
        lengths = tf.math.count_nonzero(inputs, axis=1, dtype=tf.int32)
        result = beam_search(
            self._decoder,
            self._decoder.start(inputs),
            batch_size=tf.shape(inputs)[0],
            beam_size=self.beam_size,
            alpha=self.alpha,
            max_lengths=lengths + self.extra_length,
            nbest=self.nbest,
            tensor2tensor_rules=self.tensor2tensor_rules,
        )
        return result.ids, result.scores

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def translate(self, text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Translates sentences; an empty or blank one becomes empty.

        Args:
            text: string (batch,), UTF-8.

        Returns:
            translations, string (batch,), and scores, float32 (batch,).
        """
        ids, scores = self.translate_ids(self.encode(text))
        blank = tf.strings.regex_full_match(text, BLANK)
        translations = self.decode(ids[:, 0])
        return (
            tf.where(blank, "", translations),
            tf.where(blank, 0.0, scores[:, 0]),
        )

    def encode(self, text: tf.Tensor) -> tf.Tensor:
        """Encodes sentences, cut to `max_input_length`.

        Args:
            text: string (batch,).

        Returns:
            int32 (batch, source), each row ending in EOS, 0-padded.
        """
        ids = self.tokenizer.encode(text)
        symbols = ids[:, :-1][:, : self.max_input_length - 1]
        end = tf.fill([ids.nrows(), 1], EOS_ID)
        return tf.concat([symbols, end], axis=1).to_tensor()

    def decode(self, ids: tf.Tensor) -> tf.Tensor:
        """Decodes translations to one line each.

        A model can spell a line break, in bytes or as text; in a translation it would
        shift every line that follows.

        Args:
            ids: int32 (batch, target).

        Returns:
            string (batch,), UTF-8 without line breaks.
        """
        return tf.strings.regex_replace(self.tokenizer.decode(ids), r"[\r\n]", " ")

    def translate_batches(
        self, batches: Iterable[tf.Tensor]
    ) -> Iterator[tuple[tf.Tensor, tf.Tensor]]:
        """Searches batches, several at once on a CPU, and gives them back in order.

        See `give_each_batch_a_core`. On a GPU one batch fills it.

        Args:
            batches: int32 (batch, source) each, as `translate_ids` takes them.

        Yields:
            What `translate_ids` returns for each.
        """
        with ThreadPoolExecutor(_batches_at_once()) as pool:
            yield from pool.map(self.translate_ids, batches)

    def translate_lines(
        self,
        lines: Iterable[str],
        batch_size: int = 32,
        window: int = 4096,
        progress: Callable[[int], object] | None = None,
    ) -> Iterator[Translation]:
        """Translates lines in order, batched by length inside a window.

        Args:
            lines: sentences, without line ends.
            batch_size: sentences translated at once.
            window: lines read before the first is given back, at most; bounds the
                memory.
            progress: called with the number of lines translated since the last call.

        Yields:
            One translation per line, in the order of the lines.
        """

        def tell(lines: int, tokens: int) -> None:
            if progress is not None:
                progress(lines)

        for part in windows(lines, window):
            yield from self.translate_window(part, batch_size, tell)

    def translate_window(
        self,
        lines: Sequence[str],
        batch_size: int = 32,
        progress: Callable[[int, int], object] | None = None,
    ) -> list[Translation]:
        """Translates a list of lines, the longest first.

        Args:
            lines: sentences, without line ends.
            batch_size: sentences translated at once.
            progress: called after each batch with the number of lines translated
                since the last call, and of subwords of their translations.

        Returns:
            One translation per line, in the order of the lines; blank lines stay
            empty.
        """
        if not lines:
            return []
        texts = [line[:MOST_CHARACTERS] for line in lines]
        lengths = self.tokenizer.encode(tf.constant(texts)).row_lengths().numpy()
        done = [Translation("", 0.0, 0, len(line) > MOST_CHARACTERS) for line in lines]
        full = [n for n in np.argsort(-lengths, kind="stable") if texts[n].strip()]
        if progress is not None:
            progress(len(lines) - len(full), 0)
        groups = [full[n : n + batch_size] for n in range(0, len(full), batch_size)]
        inputs = (self.encode(tf.constant([texts[n] for n in g])) for g in groups)
        for places, found in zip(groups, self.translate_batches(inputs), strict=True):
            tokens = 0
            for n, (best, *others) in zip(places, self._read(*found), strict=True):
                cut = done[n].cut or bool(lengths[n] > self.max_input_length)
                done[n] = Translation(*best, cut=cut, others=tuple(others))
                tokens += best.tokens
            if progress is not None:
                progress(len(places), tokens)
        return done

    def _read(self, ids: tf.Tensor, scores: tf.Tensor) -> list[list[Hypothesis]]:
        """Returns the `nbest` hypotheses of each sentence, or as many as there are.

        Args:
            ids: int32 (batch, beam, target).
            scores: float32 (batch, beam).
        """
        ids = ids[:, : self.nbest]
        batch, nbest, length = ids.shape
        texts = self.decode(tf.reshape(ids, [batch * nbest, length]))
        tokens = tf.math.count_nonzero(ids, axis=2)
        rows = zip(
            texts.numpy().reshape(batch, nbest),
            scores[:, : self.nbest].numpy(),
            tokens.numpy(),
            strict=True,
        )
        return [
            [
                Hypothesis(text.decode(), float(score), int(length))
                for text, score, length in zip(*row, strict=True)
                if length  # A place that no hypothesis fills holds padding alone.
            ]
            for row in rows
        ]


def windows(lines: Iterable[str], most_lines: int) -> Iterator[list[str]]:
    """Cuts a stream of lines into lists that fit into memory.

    Args:
        lines: the stream.
        most_lines: lines in a list; fewer where they are long.

    Yields:
        Lists of lines; they depend on the lines since the last list alone.
    """
    waiting: list[str] = []
    characters = 0
    for line in lines:
        waiting.append(line)
        characters += len(line)
        if len(waiting) == most_lines or characters >= _MOST_WINDOW_CHARACTERS:
            yield waiting
            waiting, characters = [], 0
    if waiting:
        yield waiting


def give_each_batch_a_core() -> None:
    """Makes TensorFlow run each operation on one core, and batches side by side.

    For a process that only translates, to be called before TensorFlow computes
    anything: once it has, or on a GPU, nothing changes. A step of the search is many
    small operations; split over two cores they take as long as on one.
    """
    if tf.config.list_physical_devices("GPU"):
        return
    with contextlib.suppress(RuntimeError):  # TensorFlow has computed something.
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(os.cpu_count() or 1)


def _batches_at_once() -> int:
    """Returns how many batches are searched at the same time on this machine."""
    if tf.config.list_physical_devices("GPU"):
        return 1
    return min(_MOST_BATCHES_AT_ONCE, os.cpu_count() or 1)
