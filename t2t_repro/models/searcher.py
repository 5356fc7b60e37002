"""Searches for the translations of batches of encoded sentences."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.decoding.lexical_constraints import Terms
from t2t_repro.models.ensemble import ModelDecoder
from t2t_repro.models.generate import combine_decoders, generate, make_decoder
from t2t_repro.models.transformer import Transformer
from t2t_repro.tokenizers.tokenizer import Tokenizer
from t2t_repro.tokenizers.word_joins import word_joins

Found = tuple[tf.Tensor, tf.Tensor]
"""Ids, int32 (batch, hypotheses, target), 0-padded after EOS, and scores, float32
(batch, hypotheses); see `BeamSearchResult`."""

_RANKS = (2, 2, 3)  # Ranks of the fields of `EncodedBatch`.


class EncodedBatch(NamedTuple):
    """Encoded sentences and the constraints on their translations.

    Attributes:
        inputs: int32 (batch, source), ending in EOS, 0-padded.
        prefixes: int32 (batch, prefix), 0-padded: first tokens of each translation,
            included in the hypothesis and its score; None for no prefixes.
        terms: int32 (batch, terms, length), 0-padded: terms that each translation must
            contain; None for no terms. Cannot be combined with prefixes.
    """

    inputs: tf.Tensor
    prefixes: tf.Tensor | None = None
    terms: tf.Tensor | None = None


class Searcher:
    """Searches for the translations of one batch after another.

    This is the reference implementation and the base class of faster searchers.

    Args:
        models: Built model, or the models of an ensemble (see `EnsembleDecoder`).
        tokenizer: Tokenizer of the models.
        config: Settings of the search.
    """

    def __init__(
        self,
        models: Sequence[Transformer],
        tokenizer: Tokenizer,
        config: DecodingConfig,
    ) -> None:
        self.config = config
        self._target = tokenizer.target
        self.decoder = combine_decoders(
            [make_decoder(each, config.hypotheses) for each in models]
        )

    def batch_size(self, lengths: Sequence[int], most: int, constrained: bool) -> int:
        """Returns the number of sentences per batch for `search_all`: here, `most`.

        Args:
            lengths: Number of tokens of each sentence, the longest first.
            most: Maximum number of sentences per batch.
            constrained: Whether the batches have prefixes or terms.
        """
        return most

    def search(
        self,
        inputs: tf.Tensor,
        prefixes: tf.Tensor | None = None,
        terms: tf.Tensor | None = None,
    ) -> Found:
        """Searches for a batch, also in a graph; arguments as in `EncodedBatch`."""
        batch, types = convert_to_tensors(EncodedBatch(inputs, prefixes, terms))
        return self._search.get_concrete_function(*types)(*batch)

    def search_all(self, batches: Sequence[EncodedBatch], most: int) -> Iterator[Found]:
        """Yields the result of each batch; `most` is as in `batch_size`."""
        for batch in batches:
            yield self.search(*batch)

    @tf.function(autograph=False)
    def _search(
        self,
        inputs: tf.Tensor,
        prefixes: tf.Tensor | None,
        terms: tf.Tensor | None,
    ) -> Found:
        """Implements `search`; traced once per combination of arguments."""
        return self.search_with(self.decoder, EncodedBatch(inputs, prefixes, terms))

    def search_with(self, decoder: ModelDecoder, batch: EncodedBatch) -> Found:
        """Builds the graph of the search with a decoder of the models."""
        inputs, prefixes, terms = batch
        constraint = None
        if terms is not None:
            joins = word_joins(self._target, decoder.vocab_size)
            constraint = Terms(terms, *map(tf.constant, joins))
        result = generate(self.config, decoder, inputs, prefixes, terms=constraint)
        return result.ids, result.scores


def convert_to_tensors(
    batch: EncodedBatch,
) -> tuple[list[tf.Tensor], list[tf.TensorSpec | None]]:
    """Returns the tensors of a batch, and their types with any shape or None."""
    types = [
        None if each is None else tf.TensorSpec([None] * rank, tf.int32)
        for each, rank in zip(batch, _RANKS, strict=True)
    ]
    tensors = [tf.convert_to_tensor(x, tf.int32) for x in batch if x is not None]
    return tensors, types
