"""Text to text: tokenizer, model and search as one graph.

The same object translates for `translate`, `evaluate`, the validation during
training and the exported SavedModel: what is scored is what is served.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, Protocol

import numpy as np
import tensorflow as tf

from t2t_repro.decoding.search import Search
from t2t_repro.decoding.stopping import length_penalty
from t2t_repro.models.searching import as_one, decoder_of, find
from t2t_repro.models.transformer import Transformer
from t2t_repro.models.variables import named_variables
from t2t_repro.tokenizers.tokenizer import EOS_ID, Tokenizer, cut_rows
from t2t_repro.translation.side_by_side import batches_at_once, rows_at_once

MAX_INPUT_LENGTH = 512
# No line is read further: a tokenizer's memory grows with its text. Were a subword
# 128 characters long, this would still be MAX_INPUT_LENGTH subwords.
MOST_CHARACTERS = 65_536
# A window of longer lines than people write has fewer of them.
_MOST_WINDOW_CHARACTERS = 1 << 22

_IDS = tf.TensorSpec([None, None], tf.int32)


class ScoredText(NamedTuple):
    """One of the translations that were found for a sentence.

    Attributes:
        text: the translation.
        score: its log probability over the length penalty.
        tokens: its subwords, EOS included.
        log_prob: its log probability.
    """

    text: str
    score: float
    tokens: int
    log_prob: float


class Translation(NamedTuple):
    """One sentence's translation.

    Attributes:
        text: the translation, the best that was found, or the first drawn.
        score: its log probability over the length penalty; 0 for an empty line.
        tokens: subwords of the translation, EOS included.
        log_prob: its log probability.
        cut: whether the source was longer than the translator reads.
        others: the next best, best first, or the next ones drawn: at most one fewer
            than the search's `nbest`.
        alignment: its words and the source's in Pharaoh format, if asked for.
    """

    text: str
    score: float
    tokens: int
    log_prob: float
    cut: bool
    others: tuple[ScoredText, ...] = ()
    alignment: str | None = None


class SentenceSearch(Protocol):
    """A search for one sentence at a time."""

    def is_for(self, inputs: tf.Tensor) -> bool:
        """Whether it can take this batch, int32 (batch, source)."""
        ...

    def __call__(self, inputs: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Finds what `Translator.translate_ids` finds."""
        ...


class Translator(tf.Module):
    """Translates batches of raw strings.

    Args:
        model: the model, already built; or several, which translate as one (see
            `EnsembleDecoder`).
        tokenizer: their vocabulary.
        search: how translations are found.
        max_input_length: longer inputs are cut to as many subwords, so that no
            sentence can exhaust memory.
        for_one: searches batches of one sentence in its own way, with the same models
            and the same `search`; `fast.compiled_search.CompiledSearch`, say.
    """

    def __init__(
        self,
        model: Transformer | Sequence[Transformer],
        tokenizer: Tokenizer,
        search: Search | None = None,
        max_input_length: int = MAX_INPUT_LENGTH,
        for_one: SentenceSearch | None = None,
    ) -> None:
        super().__init__()
        models = [model] if isinstance(model, Transformer) else list(model)
        self.tokenizer = tokenizer
        self.search = search or Search()
        self.max_input_length = max_input_length
        self.model_variables = [
            v.value for each in models for v in named_variables(each).values()
        ]
        self._decoder = as_one(
            [decoder_of(model, self.search.hypotheses) for model in models]
        )
        self._for_one = for_one

    def fingerprint(self) -> str:
        """Identifies the weights and the vocabulary: SHA-256 in hexadecimal."""
        digest = hashlib.sha256(self.tokenizer.fingerprint.encode())
        for variable in self.model_variables:
            # As bytes: hashlib knows no bfloat16.
            digest.update(np.ascontiguousarray(variable.numpy()).view(np.uint8).data)
        return digest.hexdigest()

    @tf.function(input_signature=[_IDS], autograph=False)
    def translate_ids(self, inputs: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Finds the translations of encoded sentences.

        Args:
            inputs: int32 (batch, source), ending in EOS, 0-padded.

        Returns:
            ids, int32 (batch, hypotheses, target), 0-padded after EOS, and scores,
            float32 (batch, hypotheses); see `BeamSearchResult`.
        """
        return self._find(inputs)

    @tf.function(input_signature=[_IDS, _IDS], autograph=False)
    def complete_ids(
        self, inputs: tf.Tensor, prefixes: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Finds the translations that begin as they are told to.

        Args:
            inputs: as `translate_ids` takes them.
            prefixes: int32 (batch, prefix), 0-padded.

        Returns:
            As `translate_ids`; the prefix is part of the hypothesis and of its score.
        """
        return self._find(inputs, prefixes)

    def _find(
        self, inputs: tf.Tensor, prefixes: tf.Tensor | None = None
    ) -> tuple[tf.Tensor, tf.Tensor]:
        found = find(self.search, self._decoder, inputs, prefixes)
        return found.ids, found.scores

    def encode(self, text: tf.Tensor) -> tf.Tensor:
        """Encodes sentences, cut to `max_input_length`.

        Args:
            text: string (batch,).

        Returns:
            int32 (batch, source), each row ending in EOS, 0-padded.
        """
        return cut_rows(self.tokenizer.encode(text), self.max_input_length).to_tensor()

    def _encode_prefixes(self, prefixes: Sequence[str]) -> tf.Tensor:
        """Encodes what translations begin with: int32 (batch, prefix), 0-padded."""
        ids = self.tokenizer.encode(tf.constant(prefixes))
        return ids[:, :-1][:, :MAX_INPUT_LENGTH].to_tensor()

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
        self,
        batches: Iterable[tf.Tensor],
        prefixes: Iterable[tf.Tensor] | None = None,
    ) -> Iterator[tuple[tf.Tensor, tf.Tensor]]:
        """Translates batches, several at once on a CPU, and gives them back in order.

        See `side_by_side`. On a GPU one batch fills it.

        Args:
            batches: int32 (batch, source) each, as `translate_ids` takes them.
            prefixes: as many, as `complete_ids` takes them; None: no prefixes.

        Yields:
            What `translate_ids`, or `complete_ids`, returns for each.
        """
        with ThreadPoolExecutor(batches_at_once()) as pool:
            if prefixes is None:
                yield from pool.map(self._translate_batch, batches)
            else:
                yield from pool.map(self.complete_ids, batches, prefixes)

    def _translate_batch(self, inputs: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Does as `translate_ids`, by the search for one sentence where it can."""
        if self._for_one is not None and self._for_one.is_for(inputs):
            return self._for_one(inputs)
        return self.translate_ids(inputs)

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
        prefixes: Sequence[str] | None = None,
    ) -> list[Translation]:
        """Translates a list of lines, the longest first.

        With tensor2tensor's rules, where a translation depends on its batch, batches
        are tensor2tensor's (utils/decoding.py:_get_sorted_inputs): lines are stripped,
        sorted by their words, and `batch_size` of them are a batch.

        Args:
            lines: sentences, without line ends.
            batch_size: sentences translated at once, at most.
            progress: called after each batch with the number of lines translated
                since the last call, and of subwords of their translations.
            prefixes: as many, what each translation begins with; None: nothing.

        Returns:
            One translation per line, in the order of the lines; blank lines stay
            empty.
        """
        if not lines:
            return []
        texts = [line[:MOST_CHARACTERS] for line in lines]
        if self.search.tensor2tensor_rules:
            texts = [text.strip() for text in texts]
        ids = self.tokenizer.encode(tf.constant(texts))
        lengths = ids.row_lengths().numpy()
        ids = cut_rows(ids, self.max_input_length)
        done = [
            Translation("", 0.0, 0, 0.0, len(line) > MOST_CHARACTERS) for line in lines
        ]
        ranks = lengths
        if self.search.tensor2tensor_rules:
            ranks = np.array([len(text.split()) for text in texts])
        full = [n for n in np.argsort(-ranks, kind="stable") if texts[n].strip()]
        if progress is not None:
            progress(len(lines) - len(full), 0)
        size = batch_size
        if not self.search.tensor2tensor_rules:
            size = rows_at_once(len(full), batch_size)
        groups = [full[n : n + size] for n in range(0, len(full), size)]
        inputs = (tf.gather(ids, group).to_tensor() for group in groups)
        begun = None
        if prefixes is not None:
            begun = (self._encode_prefixes([prefixes[n] for n in g]) for g in groups)
        batches = self.translate_batches(inputs, begun)
        for places, found in zip(groups, batches, strict=True):
            tokens = 0
            for n, (best, *others) in zip(places, self._read(*found), strict=True):
                cut = done[n].cut or bool(lengths[n] > self.max_input_length)
                done[n] = Translation(*best, cut=cut, others=tuple(others))
                tokens += best.tokens
            if progress is not None:
                progress(len(places), tokens)
        return done

    def _read(self, ids: tf.Tensor, scores: tf.Tensor) -> list[list[ScoredText]]:
        """Returns the `nbest` hypotheses of each sentence, or as many as there are.

        Args:
            ids: int32 (batch, beam, target).
            scores: float32 (batch, beam).
        """
        nbest = self.search.nbest
        ids = ids[:, :nbest]
        batch, nbest, length = ids.shape
        texts = self.decode(tf.reshape(ids, [batch * nbest, length]))
        tokens = tf.math.count_nonzero(ids, axis=2).numpy()
        scores = scores[:, :nbest].numpy()
        rows = zip(
            texts.numpy().reshape(batch, nbest),
            scores,
            tokens,
            scores * self._penalties(ids.numpy(), tokens),
            strict=True,
        )
        return [
            [
                ScoredText(text.decode(), float(score), int(length), float(log_prob))
                for text, score, length, log_prob in zip(*row, strict=True)
                if length  # A place that no hypothesis fills holds padding alone.
            ]
            for row in rows
        ]

    def _penalties(self, ids: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """Returns what the log probabilities were divided by: (batch, nbest).

        tensor2tensor leaves those of what did not end as they are.
        """
        penalties = length_penalty(tokens, self.search.score_alpha)
        if self.search.tensor2tensor_rules:
            return np.where((ids == EOS_ID).any(axis=2), penalties, 1.0)
        return penalties


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
