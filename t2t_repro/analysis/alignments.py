"""Which source word each target word comes from, read off the attention."""

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
"""The words that each token of a sentence belongs to."""

_TOKENS_PER_BATCH = 2048
_MOST_TOKENS = 2 * MAX_INPUT_LENGTH  # Translations grow longer than their sources.


class Aligner:
    """Aligns the words of sentence pairs by a model's cross-attention.

    The weights of one decoder layer, counted from 0, are averaged over its heads. The
    default is the last layer but one (the only one if there is one), which Garg et al.
    2019 (arXiv:1909.02074) found to align best. A missing layer is a UserError.
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

        # A graph, so that the maps of other layers are not computed.
        @tf.function(input_signature=BATCH_SIGNATURE, autograph=False)
        def weights(inputs: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
            maps = attention_maps(model, inputs, targets)
            name = f"decoder/layer_{layer}/cross_attention"
            # (batch, heads, target, source) -> (batch, target, source)
            return tf.reduce_mean(tf.cast(maps[name], tf.float32), axis=1)

        self._weights = weights

    def __call__(self, sources: Sequence[str], targets: Sequence[str]) -> list[str]:
        """Aligns sources with as many targets: a line in Pharaoh format for each pair.

        Words are what `str.split` finds. Of a very long sentence the beginning is
        aligned (1,024 tokens of either side). Where a side is blank, so is the line.
        """
        if len(sources) != len(targets):
            raise UserError(
                f"{len(sources):,} sources but {len(targets):,} targets: each target "
                "must translate the source beside it"
            )
        source, target = self.tokenizer, self.tokenizer.target
        source_ids, target_ids = _encode(source, sources), _encode(target, targets)
        lines = [""] * len(sources)
        batches = pair_batches(source_ids, target_ids, _TOKENS_PER_BATCH)
        for places, batch in batches:
            weights = self._weights(batch["inputs"], batch["targets"]).numpy()
            source_words = _words(source, source_ids, sources, places)
            target_words = _words(target, target_ids, targets, places)
            for row, n in enumerate(places):
                pairs = align_words(weights[row], source_words[row], target_words[row])
                lines[n] = pharaoh(pairs)
        return lines


def align_words(
    weights: npt.NDArray[np.floating], source_words: Words, target_words: Words
) -> set[tuple[int, int]]:
    """Returns which source word goes with which target word.

    Each target token is aligned with the source token that it attends to most, EOS
    apart, and two words are aligned if any of their tokens are (Garg et al. 2019, after
    Zenkel et al. 2019, arXiv:1901.11359). Row t of `weights`, float (target, source),
    is of the position that predicts target symbol t; EOS and padding are not looked at.
    """
    # Tokens without a word are spaces at the end of a line.
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
    """Writes an alignment in Pharaoh format: `0-0 1-2`, source-target, ascending."""
    return " ".join(f"{source}-{target}" for source, target in sorted(pairs))


def _encode(tokenizer: Tokenizer, lines: Sequence[str]) -> list[list[int]]:
    """Encodes lines, each ending in EOS and cut to what can be attended to."""
    rows = tokenizer.encode(tf.constant(lines, tf.string))
    return cut_rows(rows, _MOST_TOKENS).to_list()


def _words(
    tokenizer: Tokenizer,
    ids: list[list[int]],
    lines: Sequence[str],
    places: npt.NDArray[np.integer],
) -> list[Words]:
    """Finds the words of the tokens of some lines, EOS left out."""
    spelled = spell_tokens(tokenizer, [ids[n][:-1] for n in places])
    words: list[Words] = []
    for tokens, n in zip(spelled, places, strict=True):
        # Of a line that was cut only the tokens are known.
        line = tokens.text if len(ids[n]) == _MOST_TOKENS else lines[n]
        words.append(words_of_tokens(tokens, line))
    return words
