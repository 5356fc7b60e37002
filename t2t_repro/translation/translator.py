"""Translation of lines: tokenizer, model and search.

The same class translates in `translate`, in `evaluate`, in the validation during
training and in the exported SavedModel, so that their outputs are the same.
"""

import hashlib
import string
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import numpy as np
import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.fast.quantization import find_codes
from t2t_repro.models.searcher import EncodedBatch, Found, Searcher
from t2t_repro.models.transformer import Transformer
from t2t_repro.models.variables import named_variables
from t2t_repro.texts.sentences import MOST_CHARACTERS
from t2t_repro.texts.translation import BLANK, Hypothesis, Progress, Translation
from t2t_repro.texts.windows import windows
from t2t_repro.tokenizers import plain_tokenizer
from t2t_repro.tokenizers.term_encoding import encode_terms
from t2t_repro.tokenizers.tokenizer import EOS_ID, Tokenizer, cut_rows
from t2t_repro.translation.hypotheses import (
    ReplaceUnknown,
    score_texts,
    select_hypotheses,
)
from t2t_repro.translation.line_batches import check_limits, divide_lines

MAX_INPUT_LENGTH = 512


class Translator:
    """Translates batches of strings.

    Args:
        model: Built model, or the models of an ensemble (see `EnsembleDecoder`).
        tokenizer: Tokenizer of the models.
        search: Settings of the search.
        max_input_length: Number of subwords to which inputs are cut, EOS included.
        searcher: Searches with these models and settings; None for `Searcher`.
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
        searcher: Searcher | None = None,
        replace_unknown: ReplaceUnknown | None = None,
    ) -> None:
        self.tokenizer = tokenizer
        self.search = search or DecodingConfig()
        self.max_input_length = max_input_length
        self.limit = f"{max_input_length} subwords, EOS included"
        self._models = [model] if isinstance(model, Transformer) else list(model)
        self._searcher = searcher or Searcher(self._models, tokenizer, self.search)
        self._replace_unknown = replace_unknown

    def fingerprint(self) -> str:
        """Returns the SHA-256 of the weights and the vocabulary in hexadecimal.

        The weights of a quantized model include its int8 matrices.
        """
        digest = hashlib.sha256(self.tokenizer.fingerprint.encode())
        for model in self._models:
            weights = [each.value for each in named_variables(model).values()]
            for variable in (*weights, *find_codes(model)):
                values = np.ascontiguousarray(variable.numpy())
                # Viewed as bytes, because hashlib does not support bfloat16 arrays.
                digest.update(values.view(np.uint8).data)
        return digest.hexdigest()

    def translate_ids(
        self,
        inputs: tf.Tensor,
        prefixes: tf.Tensor | None = None,
        terms: tf.Tensor | None = None,
    ) -> Found:
        """Translates encoded sentences; see `Searcher.search`.

        Args:
            inputs: int32 (batch, source), ending in EOS, 0-padded.
            prefixes: int32 (batch, prefix), 0-padded: first tokens of each
                translation, included in the hypothesis and its score.
            terms: int32 (batch, terms, length), 0-padded: terms that each translation
                must contain, from `encode_terms`. Cannot be combined with prefixes.

        Returns:
            ids, int32 (batch, hypotheses, target), 0-padded after EOS, and scores,
            float32 (batch, hypotheses); see `BeamSearchResult`.
        """
        return self._searcher.search(inputs, prefixes, terms)

    def encode(self, text: tf.Tensor) -> tf.Tensor:
        """Encodes sentences, string (batch,), as inputs of `translate_ids`."""
        return cut_rows(self.tokenizer.encode(text), self.max_input_length).to_tensor()

    def encode_terms(self, terms: tf.Tensor, once: bool = True) -> tf.Tensor:
        """Encodes terms, string (batch, terms), padded with ""; see `encode_terms`."""
        longest = self.search.longest(self.max_input_length)
        return encode_terms(self.tokenizer.target, terms, longest, once)

    def spell_terms(self, terms: Sequence[str]) -> dict[str, str]:
        """Returns how translations spell terms, by term.

        Terms that the vocabulary cannot spell are missing.
        """
        rows = tf.constant(terms, tf.string, [len(terms), 1])
        ids = self.encode_terms(rows)[:, 0]
        texts = (text.decode().strip() for text in self.decode(ids).numpy())
        return {term: text for term, text in zip(terms, texts, strict=True) if text}

    def decode(self, ids: tf.Tensor) -> tf.Tensor:
        """Decodes translations, int32 (batch, target), to string (batch,)."""
        # A line break in the output would shift all following lines of a file.
        text = self.tokenizer.target.decode(ids)
        return tf.strings.regex_replace(text, r"[\r\n]", " ")

    def translate_lines(
        self,
        lines: Iterable[str],
        batch_size: int = 32,
        window: int = 4096,
        progress: Progress = None,
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
        progress: Progress = None,
        prefixes: Sequence[str] | None = None,
        terms: Sequence[Sequence[str]] | None = None,
    ) -> list[Translation]:
        """Translates a list of lines, the longest first.

        Args:
            lines: Sentences, without line ends.
            batch_size: Maximum number of sentences per batch.
            progress: Callback after each batch.
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
        rows = list(map(self.tokenizer.plain.encode, texts))
        lengths = np.array(list(map(len, rows)))
        translations = [
            Translation((BLANK,), cut=len(line) > MOST_CHARACTERS) for line in lines
        ]
        constrained = prefixes is not None or terms is not None
        choose_size = partial(
            self._searcher.batch_size, most=batch_size, constrained=constrained
        )
        groups = divide_lines(texts, lengths, self.search, batch_size, choose_size)
        inputs = np.minimum(lengths, self.max_input_length)
        check_limits(groups, inputs, self.search, self.tokenizer.target, prefixes)
        report = progress or (lambda lines, tokens: None)
        report(len(lines) - sum(map(len, groups)), 0)
        batches = [
            EncodedBatch(
                self._pad([rows[n] for n in group]),
                prefixes and self._encode_prefixes([prefixes[n] for n in group]),
                terms and self._encode_term_lists([terms[n] for n in group]),
            )
            for group in groups
        ]
        found = self._searcher.search_all(batches, batch_size)
        for group, result in zip(groups, found, strict=True):
            sources = [texts[n] for n in group]
            read = self._read(sources, *result, strip=terms is not None)
            for n, hypotheses in zip(group, read, strict=True):
                cut = translations[n].cut or bool(lengths[n] > self.max_input_length)
                translations[n] = Translation(tuple(hypotheses), cut)
            report(len(group), sum(row[0].tokens for row in read))
        return translations

    def _pad(self, rows: Sequence[list[int]]) -> tf.Tensor:
        """Returns encoded sentences, cut and padded: int32 (batch, source)."""
        most = self.max_input_length
        cut = [row if len(row) <= most else [*row[: most - 1], EOS_ID] for row in rows]
        return tf.constant(plain_tokenizer.pad(cut), tf.int32)

    def _encode_prefixes(self, prefixes: Sequence[str]) -> tf.Tensor:
        """Encodes prefixes of translations: int32 (batch, prefix), 0-padded."""
        return self.tokenizer.target.encode(tf.constant(prefixes))[:, :-1].to_tensor()

    def _encode_term_lists(self, terms: Sequence[Sequence[str]]) -> tf.Tensor:
        """Encodes lists of terms, which may be empty: int32 (batch, terms, length)."""
        rows = tf.ragged.constant(terms, tf.string, ragged_rank=1)
        return self.encode_terms(rows.to_tensor())

    def _read(
        self, sources: Sequence[str], ids: tf.Tensor, scores: tf.Tensor, strip: bool
    ) -> list[list[Hypothesis]]:
        """Returns the hypotheses of each sentence, at most `nbest`.

        `strip` removes the spaces around the text that terms may add.
        """
        found, values = select_hypotheses(self.search, ids, scores)
        flat = found.reshape(values.size, -1).tolist()
        texts: Sequence[str] = list(map(self.tokenizer.plain.decode, flat))
        if strip:
            texts = [text.strip(string.whitespace) for text in texts]
        if self._replace_unknown is not None:
            texts = self._replace_unknown(sources, found, texts)
        return score_texts(self.search, found, values, texts)
