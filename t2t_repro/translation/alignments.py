"""Word alignments from attention weights."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from t2t_repro.batches.packed_batch import BATCH_SIGNATURE
from t2t_repro.batches.pair_batches import pair_batches
from t2t_repro.models.attention_maps import attention_maps
from t2t_repro.models.transformer import Transformer
from t2t_repro.system.errors import UserError
from t2t_repro.texts.translation import Hypothesis, Translation
from t2t_repro.tokenizers.token_spans import (
    SPACED_WORD,
    WORD,
    spell_tokens,
    words_of_tokens,
)
from t2t_repro.tokenizers.tokenizer import Tokenizer, cut_rows
from t2t_repro.translation.translator import MAX_INPUT_LENGTH

Words = Sequence[tuple[int, ...]]
"""Word indices of each token; a token may belong to several words or none."""

_TOKENS_PER_BATCH = 2048
# Twice the maximum input length, because translations may be longer than sources.
_MAX_TOKENS = 2 * MAX_INPUT_LENGTH


class Aligner:
    """Aligns the words of sentence pairs with a model's cross-attention.

    The alignment uses the mean weights over the heads of one or two decoder layers.

    Args:
        model: Trained model.
        tokenizer: Tokenizer of the model.
        layer: Index of the decoder layer. By default, the mean of the last two layers
            (or the only one) is used. Garg et al. 2019 (arXiv:1909.02074) align best
            with the penultimate one of six; models of two layers with the last.

    Raises:
        UserError: The layer does not exist.
    """

    def __init__(
        self, model: Transformer, tokenizer: Tokenizer, layer: int | None = None
    ) -> None:
        numbers = range(model.decoder.num_layers)
        if layer is not None and layer not in numbers:
            raise UserError(
                f"decoder layer {layer} does not exist; the model has the layers 0 "
                f"to {numbers[-1]}"
            )
        self.tokenizer = tokenizer
        self.layers = list(numbers[-2:]) if layer is None else [layer]

        # In a graph, the unused maps of other layers are not computed.
        @tf.function(input_signature=BATCH_SIGNATURE, autograph=False)
        def weights(inputs: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
            maps = attention_maps(model, inputs, targets)
            names = (f"decoder/layer_{n}/cross_attention" for n in self.layers)
            # (batch, layers * heads, target, source) -> (batch, target, source)
            heads = tf.concat([maps[name] for name in names], axis=1)
            return tf.reduce_mean(tf.cast(heads, tf.float32), axis=1)

        self._weights = weights

    def align_hypotheses(
        self, sources: Sequence[str], translations: Sequence[Translation]
    ) -> list[Translation]:
        """Adds the alignment of each hypothesis with its source.

        Words are separated by white space, as in `str.split`; see `pairs`. The
        alignment is empty if a side is blank.
        """
        both = zip(sources, translations, strict=True)
        pairs = [(line, text) for line, each in both for text, *_ in each.hypotheses]
        lines, texts = ([pair[side] for pair in pairs] for side in (0, 1))
        aligned = iter(self.pairs(lines, texts))

        def align(hypothesis: Hypothesis) -> Hypothesis:
            return hypothesis._replace(alignment=tuple(sorted(next(aligned))))

        return [
            each._replace(hypotheses=tuple(map(align, each.hypotheses)))
            for each in translations
        ]

    def pairs(
        self, sources: Sequence[str], targets: Sequence[str], word: str = SPACED_WORD
    ) -> list[set[tuple[int, int]]]:
        """Aligns the words of sentence pairs; `word` is the pattern of a word.

        Only the first 1,024 tokens of each side are aligned. Raises UserError if the
        numbers of sources and targets differ.

        Returns:
            Pairs of source and target word indices for each sentence pair.
        """
        if len(sources) != len(targets):
            raise UserError(
                f"{len(sources):,} sources but {len(targets):,} targets: give one "
                "target per source"
            )
        source, target = self.tokenizer, self.tokenizer.target
        source_ids, target_ids = _encode(source, sources), _encode(target, targets)
        aligned: list[set[tuple[int, int]]] = [set() for _ in sources]
        for numbers, weights in self._attention(source_ids, target_ids):
            source_words = _words(source, source_ids, sources, numbers, word)
            target_words = _words(target, target_ids, targets, numbers, word)
            for n, *row in zip(
                numbers, weights, source_words, target_words, strict=True
            ):
                aligned[n] = align_words(*row)
        return aligned

    def source_words(
        self, sources: Sequence[str], target_ids: Sequence[Sequence[int]]
    ) -> list[list[str]]:
        """Returns the source word aligned with each target token, without punctuation.

        Args:
            sources: Source sentences.
            target_ids: Token ids of each translation, ending in EOS.

        Returns:
            One word for each token except EOS; an empty list if the source is blank.
        """
        source_ids = _encode(self.tokenizer, sources)
        aligned: list[list[str]] = [[] for _ in sources]
        for numbers, weights in self._attention(source_ids, target_ids):
            words = _words(self.tokenizer, source_ids, sources, numbers, WORD)
            for n, row, row_words in zip(numbers, weights, words, strict=True):
                spans = [match.span() for match in re.finditer(WORD, sources[n])]
                for column in _best_columns(row[: len(target_ids[n]) - 1], row_words):
                    # A token may contain several Chinese words.
                    first, last = row_words[column][0], row_words[column][-1]
                    aligned[n].append(sources[n][spans[first][0] : spans[last][1]])
        return aligned

    def _attention(
        self, source_ids: Sequence[Sequence[int]], target_ids: Sequence[Sequence[int]]
    ) -> Iterator[tuple[npt.NDArray[np.integer], npt.NDArray[np.float32]]]:
        """Yields pair numbers and attention weights (rows, target, source)."""
        for numbers, batch in pair_batches(source_ids, target_ids, _TOKENS_PER_BATCH):
            # A direct call would log that the functions of many aligners are traced.
            weights = self._weights.get_concrete_function()
            yield numbers, weights(batch["inputs"], batch["targets"]).numpy()


def align_words(
    weights: npt.NDArray[np.floating], source_words: Words, target_words: Words
) -> set[tuple[int, int]]:
    """Aligns source words with target words.

    Each target token is aligned with the source token of highest attention weight, and
    words are aligned if any of their tokens are (Garg et al. 2019, after Zenkel et al.
    2019, arXiv:1901.11359). EOS and padding are ignored.

    Args:
        weights: float (target, source); row t is the attention that predicts target
            token t. There may be more rows and columns, for EOS and padding.
        source_words: Words of each source token, without EOS.
        target_words: Words of each target token, without EOS.

    Returns:
        Pairs of source and target word indices.
    """
    best = _best_columns(np.asarray(weights)[: len(target_words)], source_words)
    return {
        (source, target)
        for words, column in zip(target_words, best, strict=bool(best))
        for source in source_words[column]
        for target in words
    }


def _best_columns(weights: npt.NDArray[np.floating], source_words: Words) -> list[int]:
    """Returns the source token of highest weight for each row; no token without words.

    Tokens that belong to no word, which are spaces at the end of the line, are skipped.
    """
    columns = [n for n, words in enumerate(source_words) if words]
    if not columns:
        return []
    return [columns[best] for best in weights[:, columns].argmax(axis=1)]


def _encode(tokenizer: Tokenizer, lines: Sequence[str]) -> list[list[int]]:
    """Encodes lines with EOS, truncated to `_MAX_TOKENS`."""
    rows = tokenizer.encode(tf.constant(lines, tf.string))
    return cut_rows(rows, _MAX_TOKENS).to_list()


def _words(
    tokenizer: Tokenizer,
    ids: list[list[int]],
    lines: Sequence[str],
    numbers: npt.NDArray[np.integer],
    word: str,
) -> list[Words]:
    """Returns the words of each token except EOS, for the lines with these numbers."""
    spelled = spell_tokens(tokenizer, [ids[n][:-1] for n in numbers])
    words: list[Words] = []
    for tokens, n in zip(spelled, numbers, strict=True):
        # The original text of a truncated line does not match its tokens.
        line = tokens.text if len(ids[n]) == _MAX_TOKENS else lines[n]
        words.append(words_of_tokens(tokens, line, word))
    return words
