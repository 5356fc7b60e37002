"""Translation from text to text: tokenizer, model and search.

The same class translates in `translate`, in `evaluate`, in the validation during
training and in the exported SavedModel, so that their outputs are the same.
"""

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np
import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.decoding.lexical_constraints import Terms
from t2t_repro.fast.cached_decoder import SharedCopies, using_copies
from t2t_repro.fast.compiled_search import CompiledSearch
from t2t_repro.fast.first_calls import FirstCalls
from t2t_repro.models.generate import as_one, decoder_of, generate
from t2t_repro.models.transformer import Transformer
from t2t_repro.models.variables import named_variables
from t2t_repro.tokenizers.tokenizer import EOS_ID, PAD_ID, Tokenizer, cut_rows
from t2t_repro.tokenizers.word_joins import word_joins
from t2t_repro.translation import parallel_batches
from t2t_repro.translation.translation import ScoredText, Translation

MAX_INPUT_LENGTH = 512
# Maximum number of characters of a line that are read: 128 per subword.
MOST_CHARACTERS = 65_536  # Limits the memory of the tokenizer.
# Maximum number of characters of a window, which limits memory if lines are very long.
_MOST_WINDOW_CHARACTERS = 1 << 22

_RANKS = (2, 2, 3)  # Ranks of inputs, prefixes and terms.
_UNCONSTRAINED = repeat(None)  # The prefixes, or terms, of any number of batches.


class Translator(tf.Module):
    """Translates batches of strings.

    Args:
        model: Built model, or the models of an ensemble (see `EnsembleDecoder`).
        tokenizer: Tokenizer of the models.
        search: Settings of the search.
        max_input_length: Number of subwords to which inputs are cut, EOS included.
        for_few: Compiled search for batches of a few sentences, with the same models
            and settings.
        replace_unknown: Replaces unknown tokens; see `UnknownWords`.

    Attributes:
        limit: Maximum length of a line, as a phrase for messages.
    """

    def __init__(
        self,
        model: Transformer | Sequence[Transformer],
        tokenizer: Tokenizer,
        search: DecodingConfig | None = None,
        max_input_length: int = MAX_INPUT_LENGTH,
        for_few: CompiledSearch | None = None,
        replace_unknown: Callable[..., Sequence[str]] | None = None,
    ) -> None:
        super().__init__()
        models = [model] if isinstance(model, Transformer) else list(model)
        self.tokenizer = tokenizer
        self.search = search or DecodingConfig()
        self.max_input_length = max_input_length
        self.limit = f"{max_input_length} subwords, EOS included"
        self.model_variables = [
            v.value for each in models for v in named_variables(each).values()
        ]
        self._decoder = as_one(
            [decoder_of(model, self.search.hypotheses) for model in models]
        )
        self._for_few, self._replace_unknown = for_few, replace_unknown
        self._first_calls, self._most_sentences = FirstCalls(), 0

    def fingerprint(self) -> str:
        """Returns the SHA-256 of the weights and the vocabulary in hexadecimal."""
        digest = hashlib.sha256(self.tokenizer.fingerprint.encode())
        for variable in self.model_variables:
            # Viewed as bytes, because hashlib does not support bfloat16 arrays.
            digest.update(np.ascontiguousarray(variable.numpy()).view(np.uint8).data)
        return digest.hexdigest()

    def translate_ids(
        self,
        inputs: tf.Tensor,
        prefixes: tf.Tensor | None = None,
        terms: tf.Tensor | None = None,
        copies: SharedCopies | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Translates encoded sentences.

        Args:
            inputs: int32 (batch, source), ending in EOS, 0-padded.
            prefixes: int32 (batch, prefix), 0-padded: first tokens of each
                translation, included in the hypothesis and its score.
            terms: int32 (batch, terms, length), 0-padded: terms that each translation
                must contain, from `encode_terms`. Cannot be combined with prefixes.
            copies: Copies of the weights that parallel calls share.

        Returns:
            ids, int32 (batch, hypotheses, target), 0-padded after EOS, and scores,
            float32 (batch, hypotheses); see `BeamSearchResult`.
        """
        arguments = (inputs, prefixes, terms)
        types = (
            None if each is None else tf.TensorSpec([None] * rank, tf.int32)
            for each, rank in zip(arguments, _RANKS, strict=True)
        )
        shared = None if copies is None else copies.of(len(inputs))
        kinds = tf.nest.map_structure(_any_matrix, shared)
        search = self._search.get_concrete_function(*types, kinds)
        ids = [tf.convert_to_tensor(x, tf.int32) for x in arguments if x is not None]
        if shared is not None:
            self._first_calls(search, ids, shared)
        return search(*ids, *tf.nest.flatten(shared or []))

    @tf.function(autograph=False)
    def _search(
        self,
        inputs: tf.Tensor,
        prefixes: tf.Tensor | None,
        terms: tf.Tensor | None,
        copies: list[list[tf.Tensor]] | None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Implements `translate_ids`; traced once per combination of arguments."""
        constraint = None
        if terms is not None:
            joins = word_joins(self.tokenizer.target, self._decoder.vocab_size)
            constraint = Terms(terms, *map(tf.constant, joins))
        decoder = using_copies(self._decoder, copies)
        result = generate(self.search, decoder, inputs, prefixes, terms=constraint)
        return result.ids, result.scores

    def encode(self, text: tf.Tensor) -> tf.Tensor:
        """Encodes sentences, string (batch,), as inputs of `translate_ids`."""
        return cut_rows(self.tokenizer.encode(text), self.max_input_length).to_tensor()

    def _encode_prefixes(self, prefixes: Sequence[str]) -> tf.Tensor:
        """Encodes prefixes of translations: int32 (batch, prefix), 0-padded."""
        return self.tokenizer.target.encode(tf.constant(prefixes))[:, :-1].to_tensor()

    def _check_prefixes(self, prefixes: Sequence[str], lengths: np.ndarray) -> None:
        """Raises UserError if a prefix is too long for sentences of these lengths."""
        sizes = self.tokenizer.target.encode(tf.constant(prefixes)).row_lengths() - 1
        for prefix, size, length in zip(prefixes, sizes.numpy(), lengths, strict=True):
            length = min(int(length), self.max_input_length)
            self.search.check_prefix(prefix, size, length)

    def encode_terms(self, terms: tf.Tensor, once: bool = True) -> tf.Tensor:
        """Encodes terms, string (batch, terms), padded with "".

        Returns:
            Ids, int32 (batch, terms, length), 0-padded, with at least one term of one
            token. Terms that the vocabulary cannot spell, and with `once` repeated
            ones, are only padding. Terms are cut to the longest translation.
        """
        rows, count = tf.unstack(tf.shape(terms))
        target = self.tokenizer.target
        longest = self.search.longest(self.max_input_length)
        ids = target.encode_terms(tf.reshape(terms, [-1]))[:, :longest].to_tensor()
        if target.unknown_id is not None:
            unknown = tf.reduce_any(tf.equal(ids, target.unknown_id), 1, keepdims=True)
            ids = tf.where(unknown, PAD_ID, ids)
        # (batch * terms, length) -> (batch, terms, length)
        ids = tf.reshape(ids, [rows, count, tf.shape(ids)[1]])
        if once:
            # Strings take less memory than the comparison of all pairs of tokens.
            texts = tf.strings.reduce_join(tf.strings.as_string(ids), 2, separator=" ")
            same = tf.equal(texts[:, :, None], texts[:, None])
            earlier = tf.range(count) < tf.range(count)[:, None]
            repeated = tf.reduce_any(same & earlier, axis=2, keepdims=True)
            ids = tf.where(repeated, PAD_ID, ids)
        missing = [[0, tf.maximum(1 - size, 0)] for size in tf.unstack(tf.shape(ids))]
        return tf.pad(ids, [[0, 0], *missing[1:]])

    def written_terms(self, terms: Sequence[str]) -> dict[str, str]:
        """Returns how translations spell terms, by term.

        Terms that the vocabulary cannot spell are missing.
        """
        rows = tf.constant(terms, tf.string, [len(terms), 1])
        ids = self.encode_terms(rows)[:, 0]
        texts = (text.decode().strip() for text in self.decode(ids).numpy())
        return {term: text for term, text in zip(terms, texts, strict=True) if text}

    def _encode_terms(self, terms: Sequence[Sequence[str]]) -> tf.Tensor:
        """Encodes lists of terms, which may be empty: int32 (batch, terms, length)."""
        most = max([1, *map(len, terms)])
        return self.encode_terms(
            tf.constant([[*row, *[""] * (most - len(row))] for row in terms])
        )

    def decode(self, ids: tf.Tensor) -> tf.Tensor:
        """Decodes translations, int32 (batch, target), to string (batch,)."""
        # A line break in the output would shift all following lines of a file.
        text = self.tokenizer.target.decode(ids)
        return tf.strings.regex_replace(text, r"[\r\n]", " ")

    def translate_batches(
        self,
        batches: Iterable[tf.Tensor],
        prefixes: Iterable[tf.Tensor | None] = _UNCONSTRAINED,
        terms: Iterable[tf.Tensor | None] = _UNCONSTRAINED,
    ) -> Iterator[tuple[tf.Tensor, tf.Tensor]]:
        """Yields the result of `translate_ids` for each batch.

        On a CPU several batches are translated in parallel (see `parallel_batches`).
        """
        batches = list(batches)
        # A graph for large batches, once traced, also translates small ones.
        self._most_sentences = max([self._most_sentences, *map(len, batches)])
        copies = SharedCopies(self._decoder, self._most_sentences)
        translate = partial(self._translate_batch, copies)
        with ThreadPoolExecutor(parallel_batches.batches_at_once()) as pool:
            yield from pool.map(translate, batches, prefixes, terms)

    def _translate_batch(
        self,
        copies: SharedCopies,
        inputs: tf.Tensor,
        prefixes: tf.Tensor | None,
        terms: tf.Tensor | None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Translates a batch with the compiled search if possible."""
        free = prefixes is None and terms is None
        if free and self._for_few and self._for_few.is_ready(*inputs.shape):
            return self._for_few(inputs)
        return self.translate_ids(inputs, prefixes, terms, copies)

    def translate_lines(
        self,
        lines: Iterable[str],
        batch_size: int = 32,
        window: int = 4096,
        progress: Callable[[int, int], object] | None = None,
    ) -> Iterator[Translation]:
        """Translates lines in order, with at most `window` lines in memory.

        The other arguments are as in `translate_window`.
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
            lines: Sentences, without line ends.
            batch_size: Maximum number of sentences per batch.
            progress: Callback after each batch; its arguments are the numbers of lines
                and of target subwords translated since the last call.
            prefixes: Prefix of each translation; None for no prefixes.
            terms: Terms that each translation must contain. Cannot be combined with
                prefixes.

        Returns:
            One translation per line, in order; an empty text for a blank line.

        Raises:
            UserError: A prefix, or the minimum length, exceeds the length limit.
        """
        if not lines:
            return []
        texts = [line[:MOST_CHARACTERS] for line in lines]
        if self.search.tensor2tensor_rules:
            texts = [text.strip() for text in texts]
        self.tokenizer.print_notes(texts)
        ids = self.tokenizer.encode(tf.constant(texts))
        lengths = ids.row_lengths().numpy()
        ids = cut_rows(ids, self.max_input_length)
        translations = [
            Translation("", 0.0, 0, 0.0, len(line) > MOST_CHARACTERS) for line in lines
        ]
        free = prefixes is None and terms is None
        groups = self._groups(texts, lengths, batch_size, free)
        start = time.monotonic()
        if self.search.min_length and groups:
            # The last text is the shortest and has the lowest limit.
            shortest = int(lengths[groups[-1][-1]])
            self.search.check_min_length(min(shortest, self.max_input_length))
        if prefixes is not None and groups:
            used = np.concatenate(groups)
            self._check_prefixes([prefixes[n] for n in used], lengths[used])
        if progress is not None:
            progress(len(lines) - sum(map(len, groups)), 0)
        inputs = (tf.gather(ids, group).to_tensor() for group in groups)

        def encode_groups(
            encode: Callable[[list[Any]], tf.Tensor], values: Sequence[Any] | None
        ) -> Iterator[tf.Tensor | None]:
            for group in groups:
                yield None if values is None else encode([values[n] for n in group])

        batches = self.translate_batches(
            inputs,
            encode_groups(self._encode_prefixes, prefixes),
            encode_groups(self._encode_terms, terms),
        )
        for group, result in zip(groups, batches, strict=True):
            tokens = 0
            sources = [texts[n] for n in group]
            rows = self._read(sources, *result, strip=terms is not None)
            for n, (best, *others) in zip(group, rows, strict=True):
                cut = translations[n].cut or bool(lengths[n] > self.max_input_length)
                translations[n] = Translation(*best, cut=cut, others=tuple(others))
                tokens += best.tokens
            if progress is not None:
                progress(len(group), tokens)
        if self._for_few and free and groups:
            longest, seconds = int(lengths[groups[0][0]]), time.monotonic() - start
            sentences = sum(map(len, groups))
            size = parallel_batches.rows_of_few(sentences, batch_size, self._for_few)
            self._for_few.add(size, longest, seconds)
        return translations

    def _groups(
        self, texts: Sequence[str], lengths: np.ndarray, batch_size: int, free: bool
    ) -> list[list[int]]:
        """Returns the indices of the texts of each batch, without blank texts.

        Texts of invisible characters may lack tokens; they are blank, too. With
        `tensor2tensor_rules` a translation depends on its batch. Texts are then sorted
        by number of words and every batch has `batch_size` sentences, as in
        tensor2tensor (utils/decoding.py:_get_sorted_inputs).
        """
        is_used = [bool(text.strip()) for text in texts] & (lengths > 1)
        if self.search.tensor2tensor_rules:
            lengths = np.array([len(text.split()) for text in texts])
        order = np.argsort(-lengths, kind="stable")
        indices = order[is_used[order]].tolist()
        if not self.search.tensor2tensor_rules:
            used, for_few = lengths[indices], self._for_few if free else None
            batch_size = parallel_batches.rows_or_few(used, batch_size, for_few)
        starts = range(0, len(indices), batch_size)
        return [indices[start : start + batch_size] for start in starts]

    def _read(
        self, sources: Sequence[str], ids: tf.Tensor, scores: tf.Tensor, strip: bool
    ) -> list[list[ScoredText]]:
        """Returns the hypotheses of each sentence, at most `nbest`.

        `strip` removes the spaces around the text that terms may add.
        """
        nbest = self.search.nbest
        ids, scores = ids[:, :nbest].numpy(), scores[:, :nbest].numpy()
        tokens = np.count_nonzero(ids, axis=2)
        log_probs = self.search.scoring.log_prob(scores, tokens)
        if self.search.tensor2tensor_rules:
            # The scores of unfinished hypotheses are not divided by the penalty.
            log_probs = np.where((ids == EOS_ID).any(axis=2), log_probs, scores)
        decoded = self.decode(ids.reshape(tokens.size, -1))
        decoded = tf.strings.strip(decoded) if strip else decoded
        rows: Sequence[str] = [text.decode() for text in decoded.numpy()]
        if self._replace_unknown is not None:
            rows = self._replace_unknown(sources, ids, rows)
        texts = np.array(rows, object).reshape(tokens.shape)
        return [
            [
                ScoredText(text, float(score), int(length), float(log_prob))
                for text, score, length, log_prob in zip(*row, strict=True)
                if length  # A missing hypothesis contains only padding.
            ]
            for row in zip(texts, scores, tokens, log_probs, strict=True)
        ]


def _any_matrix(matrix: tf.Tensor | None) -> tf.TensorSpec | None:
    """Returns the type of matrices of any shape."""
    return None if matrix is None else tf.TensorSpec([None, None], matrix.dtype)


def windows(lines: Iterable[str], most_lines: int) -> Iterator[list[str]]:
    """Splits a stream of lines into lists of `most_lines`, or fewer if lines are long.

    Each list depends only on the lines after the previous list.
    """
    window: list[str] = []
    characters = 0
    for line in lines:
        window.append(line)
        characters += len(line)
        if len(window) == most_lines or characters >= _MOST_WINDOW_CHARACTERS:
            yield window
            window, characters = [], 0
    if window:
        yield window
