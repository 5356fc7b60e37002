"""Text to text: tokenizer, model and beam search as one graph.

The same object translates for `translate`, `evaluate`, the validation during
training and the exported SavedModel: what is scored is what is served.
"""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from t2t_repro.data.tokenizer import EOS_ID, Tokenizer
from t2t_repro.decoding.beam_search import beam_search
from t2t_repro.models.cached_decoder import CachedDecoder
from t2t_repro.models.transformer import Transformer, named_variables

MAX_INPUT_LENGTH = 512
# Bounds the memory on machines of many cores.
_MOST_BATCHES_AT_ONCE = 16

# What Python calls space, for the graph and for lists of lines alike.
BLANK = r"[\x09-\x0d\x1c-\x1f\x{85}\p{Z}]*"


class Translation(NamedTuple):
    """One sentence's translation.

    Attributes:
        text: the translation.
        score: its log probability over the length penalty; 0 for an empty line.
        tokens: subwords of the translation, EOS included.
        cut: whether the source was longer than the translator reads.
    """

    text: str
    score: float
    tokens: int
    cut: bool


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
    ) -> None:
        super().__init__()
        self.tokenizer = tokenizer
        self.beam_size = beam_size
        self.alpha = alpha
        self.extra_length = extra_length
        self.max_input_length = max_input_length
        self.model_variables = [v.value for v in named_variables(model).values()]
        self._decoder = CachedDecoder(model, beam_size)

    @tf.function(
        input_signature=[tf.TensorSpec([None, None], tf.int32)], autograph=False
    )
    def translate_ids(self, inputs: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Searches the translations of encoded sentences.

        Args:
            inputs: int32 (batch, source), ending in EOS, 0-padded.

        Returns:
            ids, int32 (batch, beam, target), best first, 0-padded after EOS, and
            scores, float32 (batch, beam).
        """
        lengths = tf.math.count_nonzero(inputs, axis=1, dtype=tf.int32)
        result = beam_search(
            self._decoder,
            self._decoder.start(inputs),
            batch_size=tf.shape(inputs)[0],
            beam_size=self.beam_size,
            alpha=self.alpha,
            max_lengths=lengths + self.extra_length,
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
            window: lines read before the first is given back; bounds the memory.
            progress: called with the number of lines translated since the last call.

        Yields:
            One translation per line, in the order of the lines.
        """
        waiting: list[str] = []
        for line in lines:
            waiting.append(line)
            if len(waiting) == window:
                yield from self._translate_window(waiting, batch_size, progress)
                waiting = []
        yield from self._translate_window(waiting, batch_size, progress)

    def _translate_window(
        self,
        lines: list[str],
        batch_size: int,
        progress: Callable[[int], object] | None,
    ) -> list[Translation]:
        """Translates a list of lines, longest first."""
        if not lines:
            return []
        lengths = self.tokenizer.encode(tf.constant(lines)).row_lengths().numpy()
        done = [Translation("", 0.0, 0, cut=False)] * len(lines)
        full = [n for n in np.argsort(-lengths, kind="stable") if lines[n].strip()]
        if progress is not None:
            progress(len(lines) - len(full))
        groups = [full[n : n + batch_size] for n in range(0, len(full), batch_size)]
        inputs = (self.encode(tf.constant([lines[n] for n in g])) for g in groups)
        for places, found in zip(groups, self.translate_batches(inputs), strict=True):
            best = found[0][:, 0]
            scores = found[1][:, 0].numpy()
            texts = self.decode(best).numpy()
            tokens = tf.math.count_nonzero(best, axis=1).numpy()
            for row, n in enumerate(places):
                done[n] = Translation(
                    texts[row].decode(),
                    float(scores[row]),
                    int(tokens[row]),
                    cut=bool(lengths[n] > self.max_input_length),
                )
            if progress is not None:
                progress(len(places))
        return done


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
