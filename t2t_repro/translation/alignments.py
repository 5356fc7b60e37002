"""Word alignments from attention weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from t2t_repro.batches.packed_batch import BATCH_SIGNATURE
from t2t_repro.batches.pair_batches import pair_batches
from t2t_repro.models.attention_maps import attention_maps
from t2t_repro.models.transformer import Transformer
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.token_spans import spell_tokens, words_of_tokens
from t2t_repro.tokenizers.tokenizer import Tokenizer, cut_rows
from t2t_repro.translation.translator import MAX_INPUT_LENGTH

Words = Sequence[tuple[int, ...]]
"""Word indices of each token; a token may belong to several words or none."""

_TOKENS_PER_BATCH = 2048
# Twice the maximum input length, because translations may be longer than sources.
_MAX_TOKENS = 2 * MAX_INPUT_LENGTH


class Aligner:
    """Aligns the words of sentence pairs with a model's cross-attention.

    The alignment uses the mean weights over the heads of one decoder layer.

    Args:
        model: Trained model.
        tokenizer: Tokenizer of the model.
        layer: Index of the decoder layer. The default is the penultimate layer (or the
            only one), which Garg et al. 2019 (arXiv:1909.02074) found to align best.

    Raises:
        UserError: The layer does not exist.
    """

    def __init__(
        self, model: Transformer, tokenizer: Tokenizer, layer: int | None = None
    ) -> None:
        layers = model.decoder.num_layers
        if layer is None:
            layer = max(layers - 2, 0)
        if not 0 <= layer < layers:
            raise UserError(
                f"decoder layer {layer} does not exist; the model has the layers 0 "
                f"to {layers - 1}"
            )
        self.tokenizer = tokenizer
        self.layer = layer

        # In a graph, the unused maps of other layers are not computed.
        @tf.function(input_signature=BATCH_SIGNATURE, autograph=False)
        def weights(inputs: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
            maps = attention_maps(model, inputs, targets)
            name = f"decoder/layer_{layer}/cross_attention"
            # (batch, heads, target, source) -> (batch, target, source)
            return tf.reduce_mean(tf.cast(maps[name], tf.float32), axis=1)

        self._weights = weights

    def __call__(self, sources: Sequence[str], targets: Sequence[str]) -> list[str]:
        """Aligns the words of sentence pairs.

        Words are separated by white space, as in `str.split`. Only the first 1,024
        tokens of each side are aligned. Raises UserError if the numbers of sources and
        targets differ.

        Returns:
            Alignment of each pair in Pharaoh format; empty if a side is blank.
        """
        if len(sources) != len(targets):
            raise UserError(
                f"{len(sources):,} sources but {len(targets):,} targets: give one "
                "target per source"
            )
        source, target = self.tokenizer, self.tokenizer.target
        source_ids, target_ids = _encode(source, sources), _encode(target, targets)
        lines = [""] * len(sources)
        batches = pair_batches(source_ids, target_ids, _TOKENS_PER_BATCH)
        for numbers, batch in batches:
            weights = self._weights(batch["inputs"], batch["targets"]).numpy()
            source_words = _words(source, source_ids, sources, numbers)
            target_words = _words(target, target_ids, targets, numbers)
            for row, n in enumerate(numbers):
                pairs = align_words(weights[row], source_words[row], target_words[row])
                lines[n] = pharaoh(pairs)
        return lines


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
    # Skip tokens that belong to no word: spaces at the end of the line.
    columns = [n for n, words in enumerate(source_words) if words]
    if not columns:
        return set()
    best = np.asarray(weights)[: len(target_words), columns].argmax(axis=1)
    return {
        (source, target)
        for words, column in zip(target_words, best, strict=True)
        for source in source_words[columns[column]]
        for target in words
    }


def pharaoh(pairs: set[tuple[int, int]]) -> str:
    """Formats an alignment as sorted pairs in Pharaoh format, e.g. `0-0 1-2`."""
    return " ".join(f"{source}-{target}" for source, target in sorted(pairs))


def _encode(tokenizer: Tokenizer, lines: Sequence[str]) -> list[list[int]]:
    """Encodes lines with EOS, truncated to `_MAX_TOKENS`."""
    rows = tokenizer.encode(tf.constant(lines, tf.string))
    return cut_rows(rows, _MAX_TOKENS).to_list()


def _words(
    tokenizer: Tokenizer,
    ids: list[list[int]],
    lines: Sequence[str],
    numbers: npt.NDArray[np.integer],
) -> list[Words]:
    """Returns the words of each token except EOS, for the lines with these numbers."""
    spelled = spell_tokens(tokenizer, [ids[n][:-1] for n in numbers])
    words: list[Words] = []
    for tokens, n in zip(spelled, numbers, strict=True):
        # The original text of a truncated line does not match its tokens.
        line = tokens.text if len(ids[n]) == _MAX_TOKENS else lines[n]
        words.append(words_of_tokens(tokens, line))
    return words
