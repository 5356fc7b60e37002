"""Decoding with models."""

from collections.abc import Sequence

import tensorflow as tf

from t2t_repro.decoding.beam_search import beam_search
from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.decoding.decode_loop import BeamSearchResult, decode_batch
from t2t_repro.decoding.lexical_constraints import Terms
from t2t_repro.decoding.sampling import sampling_search, sentence_keys
from t2t_repro.models.cached_decoder import CachedDecoder
from t2t_repro.models.ensemble import EnsembleDecoder, ModelDecoder
from t2t_repro.models.transformer import Transformer
from t2t_repro.system.dispatch import dispatched


@dispatched
def make_decoder(model: Transformer, beam_size: int) -> ModelDecoder:
    """Returns the decoder of a model with `beam_size` hypotheses per sentence."""
    return CachedDecoder(model, beam_size)


def combine_decoders(decoders: Sequence[ModelDecoder]) -> ModelDecoder:
    """Returns the decoder, or an ensemble if there are several."""
    return decoders[0] if len(decoders) == 1 else EnsembleDecoder(decoders)


@dispatched
def generate(
    config: DecodingConfig,
    decoder: ModelDecoder,
    inputs: tf.Tensor,
    prefixes: tf.Tensor | None = None,
    width: int | None = None,
    terms: Terms | None = None,
) -> BeamSearchResult:
    """Finds the translations of encoded sentences.

    The arguments can be combined as `TranslationOptions.check` allows.

    Args:
        config: Settings of the search.
        decoder: Decoder for `config.hypotheses` hypotheses per sentence.
        inputs: int32 (batch, source), ending in EOS, 0-padded.
        prefixes: int32 (batch, prefix), 0-padded, the beginnings of the outputs; or
            None.
        width: Fixed length of the result, at least that of any output. Shapes are then
            the same in every step, as XLA requires.
        terms: Lexical constraints.
    """
    state = decoder.start(inputs)
    limits = config.longest(tf.math.count_nonzero(inputs, axis=1, dtype=tf.int32))
    constraints = config.constraints(prefixes)
    if config.sampling:
        assert terms is None and width is None and not config.tensor2tensor_rules
        search = sampling_search(config, limits, sentence_keys(inputs), constraints)
    else:
        search = beam_search(config, limits, constraints, terms, width)
    compact_at = 0.25 if width is None else None
    return decode_batch(search, decoder, state, compact_at, width)
