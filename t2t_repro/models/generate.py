"""A search with models, as a translator runs it."""

from collections.abc import Sequence

import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.decoding.decode_loop import BeamSearchResult
from t2t_repro.decoding.lexical_constraints import Terms
from t2t_repro.models.cached_decoder import CachedDecoder
from t2t_repro.models.ensemble import EnsembleDecoder, ModelDecoder
from t2t_repro.models.transformer import Transformer
from t2t_repro.system.dispatch import dispatched


@dispatched
def decoder_of(model: Transformer, beam_size: int) -> ModelDecoder:
    """Returns what a search steps through, for `beam_size` hypotheses a sentence."""
    return CachedDecoder(model, beam_size)


def as_one(decoders: Sequence[ModelDecoder]) -> ModelDecoder:
    """Returns the one decoder that there is, or several as one."""
    return decoders[0] if len(decoders) == 1 else EnsembleDecoder(decoders)


@dispatched
def generate(
    search: DecodingConfig,
    decoder: ModelDecoder,
    inputs: tf.Tensor,
    prefixes: tf.Tensor | None = None,
    width: int | None = None,
    terms: Terms | None = None,
) -> BeamSearchResult:
    """Finds the translations of encoded sentences.

    Args:
        search: how.
        decoder: of the search's number of hypotheses.
        inputs: int32 (batch, source), ending in EOS, 0-padded.
        prefixes: int32 (batch, prefix), 0-padded, what each begins with; or None.
        width: of the result, where it has to be known; see `DecodingConfig.run`.
        terms: what each must hold; or None.
    """
    state = decoder.start(inputs)
    return search.run(decoder, state, inputs, prefixes, width, terms)
