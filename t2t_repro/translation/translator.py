"""Text to text: tokenizer, model and search.

The same object translates for `translate`, `evaluate`, the validation during training
and the exported SavedModel: what is scored is what is served.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.decoding.lexical_constraints import Terms
from t2t_repro.fast.compiled_search import CompiledSearch
from t2t_repro.models.generate import as_one, decoder_of, generate
from t2t_repro.models.transformer import Transformer
from t2t_repro.models.variables import named_variables
from t2t_repro.tokenizers.tokenizer import EOS_ID, Tokenizer, cut_rows
from t2t_repro.tokenizers.word_joins import word_joins
from t2t_repro.translation.parallel_batches import batches_at_once, rows_at_once

MAX_INPUT_LENGTH = 512
# No line is read further: a tokenizer's memory grows with its text. At 128 characters
# a subword this is MAX_INPUT_LENGTH subwords.
MOST_CHARACTERS = 65_536
# A window of longer lines than people write has fewer of them.
_MOST_WINDOW_CHARACTERS = 1 << 22

_RANKS = (2, 2, 3)  # Of ids, prefixes and terms.


class ScoredText(NamedTuple):
    """One of the translations of a sentence; the fields are `Translation`'s."""

    text: str
    score: float
    tokens: int
    log_prob: float


class Translation(NamedTuple):
    """One sentence's translation.

    Attributes:
        text: the best that was found, or the first drawn.
        score: its log probability over the length penalty; 0 for an empty line.
        tokens: its subwords, EOS included.
        log_prob: natural logarithm.
        cut: whether the source was longer than the translator reads.
        others: the next best, or the next drawn, up to the search's `nbest` in all.
        alignment: of its words with the source's, in Pharaoh format, if asked for.
    """

    text: str
    score: float
    tokens: int
    log_prob: float
    cut: bool
    others: tuple[ScoredText, ...] = ()
    alignment: str | None = None


class Translator(tf.Module):
    """Translates batches of raw strings.

    Args:
        model: already built; or several models, which translate as one (see
            `EnsembleDecoder`).
        tokenizer: their vocabulary.
        search: how translations are found.
        max_input_length: longer inputs are cut to as many subwords, EOS included.
        for_one: searches batches of one sentence, with the same models and `search`.
    """

    def __init__(
        self,
        model: Transformer | Sequence[Transformer],
        tokenizer: Tokenizer,
        search: DecodingConfig | None = None,
        max_input_length: int = MAX_INPUT_LENGTH,
        for_one: CompiledSearch | None = None,
    ) -> None:
        super().__init__()
        models = [model] if isinstance(model, Transformer) else list(model)
        self.tokenizer = tokenizer
        self.search = search or DecodingConfig()
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

    def translate_ids(
        self,
        inputs: tf.Tensor,
        prefixes: tf.Tensor | None = None,
        terms: tf.Tensor | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Finds the translations of encoded sentences.

        Args:
            inputs: int32 (batch, source), ending in EOS, 0-padded.
            prefixes: int32 (batch, prefix), 0-padded, the beginning of each
                translation; part of the hypothesis and of its score.
            terms: int32 (batch, terms, length), 0-padded, what each translation must
                contain, as `encode_terms` returns them; not together with prefixes.

        Returns:
            ids, int32 (batch, hypotheses, target), 0-padded after EOS, and scores,
            float32 (batch, hypotheses); see `BeamSearchResult`.
        """
        given = (inputs, prefixes, terms)
        types = (
            None if each is None else tf.TensorSpec([None] * rank, tf.int32)
            for each, rank in zip(given, _RANKS, strict=True)
        )
        search = self._search.get_concrete_function(*types)
        arrays = (each for each in given if each is not None)
        return search(*(tf.convert_to_tensor(each, tf.int32) for each in arrays))

    @tf.function(autograph=False)
    def _search(
        self, inputs: tf.Tensor, prefixes: tf.Tensor | None, terms: tf.Tensor | None
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Does as `translate_ids`; traced once for each choice of arguments."""
        constraint = None
        if terms is not None:
            joins = word_joins(self.tokenizer.target, self._decoder.vocab_size)
            constraint = Terms(terms, *map(tf.constant, joins))
        result = generate(
            self.search, self._decoder, inputs, prefixes, terms=constraint
        )
        return result.ids, result.scores

    def encode(self, text: tf.Tensor) -> tf.Tensor:
        """Encodes sentences, string (batch,), as `translate_ids` takes them."""
        return cut_rows(self.tokenizer.encode(text), self.max_input_length).to_tensor()

    def _encode_prefixes(self, prefixes: Sequence[str]) -> tf.Tensor:
        """Encodes how translations begin: int32 (batch, prefix), 0-padded."""
        ids = self.tokenizer.target.encode(tf.constant(prefixes))
        return ids[:, :-1][:, :MAX_INPUT_LENGTH].to_tensor()

    def encode_terms(self, terms: tf.Tensor) -> tf.Tensor:
        """Encodes terms, string (batch, terms), "" for none.

        Returns:
            int32 (batch, terms, length), 0-padded.
        """
        rows, count = tf.unstack(tf.shape(terms))
        ids = self.tokenizer.target.encode(tf.reshape(terms, [-1]))[:, :-1].to_tensor()
        # (batch * terms, length) -> (batch, terms, length), of at least one symbol.
        ids = tf.pad(ids, [[0, 0], [0, tf.maximum(1 - tf.shape(ids)[1], 0)]])
        return tf.reshape(ids, [rows, count, tf.shape(ids)[1]])

    def _encode_terms(self, terms: Sequence[Sequence[str]]) -> tf.Tensor:
        """Encodes the terms of each sentence, of which there may be none."""
        most = max([1, *map(len, terms)])
        return self.encode_terms(
            tf.constant([[*row, *[""] * (most - len(row))] for row in terms])
        )

    def decode(self, ids: tf.Tensor) -> tf.Tensor:
        """Decodes translations, int32 (batch, target): string (batch,), a line each."""
        # A line break that a model spells would shift every line that follows.
        text = self.tokenizer.target.decode(ids)
        return tf.strings.regex_replace(text, r"[\r\n]", " ")

    def translate_batches(
        self,
        batches: Iterable[tf.Tensor],
        prefixes: Iterable[tf.Tensor] | None = None,
        terms: Iterable[tf.Tensor] | None = None,
    ) -> Iterator[tuple[tf.Tensor, tf.Tensor]]:
        """Yields what `translate_ids` returns for each batch.

        On a CPU several batches are searched at once (see `parallel_batches`).
        """
        optional = (
            repeat(None) if each is None else each for each in (prefixes, terms)
        )
        with ThreadPoolExecutor(batches_at_once()) as pool:
            yield from pool.map(self._translate_batch, batches, *optional)

    def _translate_batch(
        self, inputs: tf.Tensor, *constraints: tf.Tensor | None
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Does as `translate_ids`, by the search for one sentence if that can."""
        alone = self._for_one
        if alone is not None and constraints == (None, None) and alone.is_for(inputs):
            return alone(inputs)
        return self.translate_ids(inputs, *constraints)

    def translate_lines(
        self,
        lines: Iterable[str],
        batch_size: int = 32,
        window: int = 4096,
        progress: Callable[[int, int], object] | None = None,
    ) -> Iterator[Translation]:
        """Translates lines in order, at most `window` of them in memory.

        The rest is as in `translate_window`.
        """
        for part in windows(lines, window):
            yield from self.translate_window(part, batch_size, progress)

    def translate_window(
        self,
        lines: Sequence[str],
        batch_size: int = 32,
        progress: Callable[[int, int], object] | None = None,
        prefixes: Sequence[str] | None = None,
        terms: Sequence[Sequence[str]] | None = None,
    ) -> list[Translation]:
        """Translates a list of lines, the longest first.

        Args:
            lines: sentences, without line ends.
            batch_size: sentences translated at once, at most.
            progress: called after each batch with the number of lines translated
                since the last call, and of subwords of their translations.
            prefixes: how each translation begins; None: as it likes.
            terms: what each translation must hold; not together with prefixes.

        Returns:
            One translation per line, in their order; blank lines stay empty.
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
        groups = self._groups(texts, lengths, batch_size)
        if progress is not None:
            progress(len(lines) - sum(map(len, groups)), 0)
        inputs = (tf.gather(ids, group).to_tensor() for group in groups)

        def of_each_group(
            encode: Callable[[list[Any]], tf.Tensor], given: Sequence[Any] | None
        ) -> Iterator[tf.Tensor] | None:
            if given is None:
                return None
            return (encode([given[n] for n in group]) for group in groups)

        batches = self.translate_batches(
            inputs,
            of_each_group(self._encode_prefixes, prefixes),
            of_each_group(self._encode_terms, terms),
        )
        for places, result in zip(groups, batches, strict=True):
            tokens = 0
            for n, (best, *others) in zip(places, self._read(*result), strict=True):
                cut = done[n].cut or bool(lengths[n] > self.max_input_length)
                done[n] = Translation(*best, cut=cut, others=tuple(others))
                tokens += best.tokens
            if progress is not None:
                progress(len(places), tokens)
        return done

    def _groups(
        self, texts: Sequence[str], lengths: np.ndarray, batch_size: int
    ) -> list[list[int]]:
        """Returns the numbers of the texts of each batch; blank ones are in none.

        tensor2tensor sorts by words, and its batches have `batch_size` sentences, which
        matters where a translation depends on its batch
        (utils/decoding.py:_get_sorted_inputs).
        """
        if self.search.tensor2tensor_rules:
            lengths = np.array([len(text.split()) for text in texts])
        order = np.argsort(-lengths, kind="stable").tolist()
        full = [n for n in order if texts[n].strip()]
        size = batch_size
        if not self.search.tensor2tensor_rules:
            size = rows_at_once(len(full), batch_size)
        return [full[n : n + size] for n in range(0, len(full), size)]

    def _read(self, ids: tf.Tensor, scores: tf.Tensor) -> list[list[ScoredText]]:
        """Returns the `nbest` hypotheses of each sentence, or as many as there are."""
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
            self._log_probs(scores, ids.numpy(), tokens),
            strict=True,
        )
        return [
            [
                ScoredText(text.decode(), float(score), int(length), float(log_prob))
                for text, score, length, log_prob in zip(*row, strict=True)
                if length  # A place without a hypothesis is all padding.
            ]
            for row in rows
        ]

    def _log_probs(
        self, scores: np.ndarray, ids: np.ndarray, tokens: np.ndarray
    ) -> np.ndarray:
        """Returns the log probabilities of scores, (batch, nbest)."""
        found = self.search.scoring.log_prob(scores, tokens)
        if self.search.tensor2tensor_rules:  # What did not end keeps its own.
            return np.where((ids == EOS_ID).any(axis=2), found, scores)
        return found


def windows(lines: Iterable[str], most_lines: int) -> Iterator[list[str]]:
    """Cuts a stream of lines into lists of `most_lines`, fewer if they are long.

    A list depends on the lines after the one before alone.
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
