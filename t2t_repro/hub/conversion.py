"""Supported hyper-parameters of presets, and samplers for the search of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from t2t_repro.hparams.supported import Supported
from t2t_repro.hub.other_samplers import (
    MarianSampler,
    OpenNMTSampler,
    TransformersSampler,
)
from t2t_repro.hub.sampler import BeamSearchSampler

if TYPE_CHECKING:
    from t2t_repro.decoding.config import DecodingConfig

SUPPORTED = Supported(
    "a keras-hub preset",
    "use python -m t2t_repro.translate",
    (
        *("tokenizer", "vocab_size", "share_vocab", "vocab_divisor"),
        *("share_embeddings", "tie_target"),
        *("d_model", "d_ff", "decoder_d_ff", "num_layers", "num_decoder_layers"),
        *("num_heads", "d_k", "d_v", "activation", "attention_bias", "softmax_bias"),
        *("norm", "norm_epsilon", "max_relative_position", "self_attention_radius"),
        *("max_position", "start_symbol", "source_end", "scale_embeddings"),
        *("target_space_embedding", "target_space_id", "position"),
        *("search", "beam_size", "alpha", "word_penalty", "allow_unknown"),
        *("decode_extra_length", "decode_length_factor"),
    ),
)
"""Hyper-parameters that the backbone and the samplers can represent."""


def sampler_for(search: DecodingConfig) -> BeamSearchSampler:
    """Returns the sampler with the settings of a search."""
    kinds: dict[str, type[BeamSearchSampler]] = {
        "t2t": BeamSearchSampler,
        "marian": MarianSampler,
        "transformers": TransformersSampler,
        "opennmt": OpenNMTSampler,
    }
    settings: dict[str, Any] = {"never": search.never}
    if search.algorithm == "marian":
        settings["word_penalty"] = search.word_penalty
    return kinds[search.algorithm](search.beam_size, search.alpha, **settings)
