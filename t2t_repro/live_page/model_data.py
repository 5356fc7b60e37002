"""Model data of the live page: hyper-parameters, packed weights and the tokenizer."""

from __future__ import annotations

from typing import Any

import numpy as np

from t2t_repro.analysis.page import base64_text
from t2t_repro.hparams import HParams
from t2t_repro.models.transformer import Transformer
from t2t_repro.models.variables import named_variables
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.tokenizer import MARIAN_SUFFIX, WORD_PIECE_SUFFIX

MOST_PARAMETERS = 32_000_000
"""The largest model that a page holds: 96 MB of weights, of three bytes each."""

_ONLY_AS_BY_DEFAULT = (
    *("max_relative_position", "self_attention_radius"),
    *("search", "word_penalty", "decode_length_factor", "allow_unknown"),
    *("activation", "attention_bias", "norm_epsilon", "decoder_d_ff", "tie_target"),
    *("softmax_bias", "start_symbol", "source_end"),
)


def live_config(hparams: HParams) -> dict[str, Any]:
    """Returns the settings of a model that the page needs besides its weights.

    Raises:
        UserError: the model has an option that the page does not compute.
    """
    for name in _ONLY_AS_BY_DEFAULT:
        if getattr(hparams, name) != getattr(HParams, name):
            raise UserError(
                f"the page does not compute {name} (here {getattr(hparams, name)}); "
                "leave --live out for a page of one sentence"
            )
    if hparams.position == "sinusoid_from_one":
        raise UserError(
            "the page does not compute position (here sinusoid_from_one); leave --live "
            "out for a page of one sentence"
        )
    return {
        "dModel": hparams.d_model,
        "dFf": hparams.d_ff,
        "layers": hparams.num_layers,
        "decoderLayers": hparams.decoder_layers,
        "heads": hparams.num_heads,
        "dK": hparams.key_size,
        "dV": hparams.value_size,
        "norm": hparams.norm,
        "position": hparams.position,
        "scaleEmbeddings": hparams.scale_embeddings,
        "targetSpace": hparams.target_space_id,
        "beamSize": hparams.beam_size,
        "alpha": hparams.alpha,
        "extraLength": hparams.decode_extra_length,
        "warmupSteps": hparams.warmup_steps,
    }


def packed_weights(model: Transformer) -> tuple[list[Any], bytes]:
    """Returns the names and shapes of a model's variables, and their bytes.

    A weight is the upper three bytes of a float32, rounded to the nearest: float16
    would change a few translations in a hundred odd lines.

    Raises:
        UserError: the model is too large for a page, or a weight is not finite.
    """
    values = {name: v.numpy() for name, v in named_variables(model).items()}
    size = sum(value.size for value in values.values())
    if size > MOST_PARAMETERS:
        raise UserError(
            f"the model has {size:,} parameters; a page holds {MOST_PARAMETERS:,} at "
            "most (96 MB)"
        )
    packed = []
    for name, value in values.items():
        if not np.isfinite(value).all():
            raise UserError(f"{name} holds weights that are no finite numbers")
        bits = np.ascontiguousarray(value, "<f4").view("<u4").reshape(-1)
        rounded = (bits + 0x7F + (bits >> 8 & 1)).astype("<u4")  # Half to even.
        packed.append(rounded.view(np.uint8).reshape(-1, 4)[:, 1:].tobytes())
    return [[name, list(v.shape)] for name, v in values.items()], b"".join(packed)


def live_tokenizer(contents: bytes, file_name: str) -> dict[str, Any]:
    """Returns a vocabulary as the page reads it.

    Raises:
        UserError: the page does not support an option of the vocabulary.
    """
    if file_name.endswith(MARIAN_SUFFIX):
        raise UserError("the page does not know the vocabularies of Marian's models")
    if file_name.endswith(WORD_PIECE_SUFFIX):
        from t2t_repro.tokenizers.word_pieces import class_boundaries, from_file

        return {
            "kind": "word pieces",
            "pieces": from_file(contents, file_name),
            "boundaries": class_boundaries(),
        }
    from t2t_repro.tokenizers.sentencepiece_tokenizer import model_proto

    proto = model_proto(contents)
    _check_sentencepiece(proto)
    return {
        "kind": "SentencePiece",
        "pieces": [[p.piece, p.score, p.type] for p in proto.pieces],
        "normalizer": base64_text(proto.normalizer_spec.precompiled_charsmap),
        "denormalizer": base64_text(proto.denormalizer_spec.precompiled_charsmap),
        "unknown": proto.trainer_spec.unk_surface,
        "removeSpaces": proto.normalizer_spec.remove_extra_whitespaces,
        "addPrefix": proto.normalizer_spec.add_dummy_prefix,
    }


def _check_sentencepiece(proto: Any) -> None:
    """Rejects vocabularies that the page's tokenizer would split differently.

    Any normalisation will do: the model holds it, written out.

    Args:
        proto: a `sentencepiece.ModelProto`.
    """
    spec = proto.trainer_spec
    kind = spec.ModelType.Name(spec.model_type)
    user_defined = [p.piece for p in proto.pieces if p.type == p.USER_DEFINED]
    for is_unknown, what in (
        # A character model is a BPE model without merges.
        (kind not in ("BPE", "CHAR"), f"model_type {kind.lower()}"),
        (spec.treat_whitespace_as_suffix, "treat_whitespace_as_suffix"),
        (not proto.normalizer_spec.escape_whitespaces, "escape_whitespaces off"),
        (user_defined, f"user_defined_symbols (here {', '.join(user_defined)})"),
    ):
        if is_unknown:
            raise UserError(
                f"the page does not know SentencePiece's {what}; leave --live out for "
                "a page of one sentence"
            )
