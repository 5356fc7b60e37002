"""Exports a model to the live page: settings, packed weights and tokenizer."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np

from t2t_repro.analysis.page import base64_text
from t2t_repro.hparams import HParams
from t2t_repro.hparams.supported import Supported
from t2t_repro.models.transformer import Transformer
from t2t_repro.models.variables import named_variables
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.tokenizer import (
    MARIAN_SUFFIX,
    SEPARATE_SUFFIX,
    WORD_PIECE_SUFFIX,
)

MOST_PARAMETERS = 32_000_000
"""Maximum number of parameters in a page: 96 MB of weights with three bytes each."""

MOST_EXACT_PARAMETERS = 800_000
"""Maximum number of parameters whose weights are stored in float32: 3.2 MB."""

_POSITIONS = ("sinusoid", "sinusoid_paper", "sinusoid_halves", "learned", "none")
_REMEDY = "use visualize --text without --live for a single sentence"

SUPPORTED = Supported(
    "the live page",
    _REMEDY,
    (
        *("tokenizer", "vocab_size", "share_vocab", "vocab_divisor"),
        *("share_embeddings", "tie_target"),
        *("d_model", "d_ff", "decoder_d_ff", "num_layers", "num_decoder_layers"),
        *("num_heads", "d_k", "d_v", "attention_bias", "softmax_bias"),
        *("norm_epsilon", "max_position", "start_symbol", "source_end"),
        "scale_embeddings",
        *("target_space_embedding", "target_space_id"),
        *("beam_size", "alpha", "word_penalty", "allow_unknown"),
        *("decode_extra_length", "decode_length_factor"),
    ),
    {
        "search": ("t2t", "marian", "transformers"),
        "norm": ("post", "pre"),
        "position": _POSITIONS,
        "activation": ("relu", "swish", "gelu", "gelu_sigmoid"),
    },
)
"""Hyper-parameters that the page implements."""


def live_config(hparams: HParams) -> dict[str, Any]:
    """Returns the settings of a model for the page.

    Raises:
        UserError: The page does not implement a setting of the model.
    """
    SUPPORTED.check(hparams)
    return {
        "dModel": hparams.d_model,
        "dFf": hparams.d_ff,
        "layers": hparams.num_layers,
        "decoderLayers": hparams.decoder_layers,
        "heads": hparams.num_heads,
        "dK": hparams.key_size,
        "dV": hparams.value_size,
        "activation": hparams.activation,
        "norm": hparams.norm,
        "normEpsilon": hparams.norm_epsilon,
        "position": hparams.position,
        "scaleEmbeddings": hparams.scale_embeddings,
        "startSymbol": hparams.start_symbol,
        "sourceEnd": hparams.source_end,
        "targetSpace": hparams.target_space_id,
        "search": hparams.search,
        "beamSize": hparams.beam_size,
        "alpha": hparams.alpha,
        "wordPenalty": hparams.word_penalty,
        "allowUnknown": hparams.allow_unknown,
        "extraLength": hparams.decode_extra_length,
        "lengthFactor": hparams.decode_length_factor,
        "warmupSteps": hparams.warmup_steps,
    }


def pack_weights(model: Transformer) -> tuple[list[Any], bytes]:
    """Returns the names and shapes of a model's variables, and their packed weights.

    Weights of a small model are stored in float32. Each weight of a larger one is the
    upper three bytes of a float32, rounded to nearest; float16 would change a few
    percent of the translations of unusual lines.

    Raises:
        UserError: The model is too large for a page, or a weight is not finite.
    """
    values = {name: v.numpy() for name, v in named_variables(model).items()}
    size = sum(value.size for value in values.values())
    if size > MOST_PARAMETERS:
        raise UserError(
            f"the model has {size:,} parameters; the live page supports at most "
            f"{MOST_PARAMETERS:,} (96 MB)"
        )
    is_exact = size <= MOST_EXACT_PARAMETERS
    packed = []
    for name, value in values.items():
        if not np.isfinite(value).all():
            raise UserError(f"{name} contains weights that are infinite or NaN")
        bits = np.ascontiguousarray(value, "<f4").view("<u4").reshape(-1)
        if is_exact:
            packed.append(bits.tobytes())
            continue
        # Round half to even.
        rounded = (bits + 0x7F + (bits >> 8 & 1)).astype("<u4")
        packed.append(rounded.view(np.uint8).reshape(-1, 4)[:, 1:].tobytes())
    return [[name, list(v.shape)] for name, v in values.items()], b"".join(packed)


def live_tokenizer(contents: bytes, file_name: str) -> dict[str, Any]:
    """Returns the tokenizer's data for the page.

    They are those of the source's vocabulary. If the target has its own, its data are
    the value of "target".

    Args:
        contents: Bytes of the vocabulary file, which must be valid.
        file_name: Name of the file, whose suffix determines the type of vocabulary.

    Raises:
        UserError: The page does not implement the type or an option of the vocabulary.
    """
    if file_name.endswith(MARIAN_SUFFIX):
        return _marian_sides(json.loads(contents))
    if file_name.endswith(SEPARATE_SUFFIX):
        fields = json.loads(contents)
        source, target = (
            live_tokenizer(base64.b64decode(fields[side]), fields["kind"])
            for side in ("source", "target")
        )
        return source | {"target": target}
    if file_name.endswith(WORD_PIECE_SUFFIX):
        from t2t_repro.tokenizers.word_pieces import class_boundaries, parse_file

        return {
            "kind": "word pieces",
            "pieces": parse_file(contents, file_name),
            "boundaries": class_boundaries(),
        }
    from t2t_repro.tokenizers.sentencepiece_tokenizer import model_proto

    proto = model_proto(contents)
    _check_sentencepiece(proto)
    return {
        "kind": "SentencePiece",
        "isUnigram": proto.trainer_spec.model_type == proto.trainer_spec.UNIGRAM,
        "pieces": [[p.piece, p.score, p.type] for p in proto.pieces],
        "normalizer": base64_text(proto.normalizer_spec.precompiled_charsmap),
        "denormalizer": base64_text(proto.denormalizer_spec.precompiled_charsmap),
        "unknown": proto.trainer_spec.unk_surface,
        "removeSpaces": proto.normalizer_spec.remove_extra_whitespaces,
        "addPrefix": proto.normalizer_spec.add_dummy_prefix,
    }


def _marian_sides(fields: dict[str, Any]) -> dict[str, Any]:
    """Returns the data of a `MarianTokenizer`, of whose file `fields` are the contents.

    Raises:
        UserError: The page does not implement an option of a SentencePiece model.
    """
    added = fields.get("added", {})
    longest_first = sorted(added.items(), key=lambda each: len(each[0]), reverse=True)

    def side(name: str, start: str | None) -> dict[str, Any]:
        model = fields[f"{name}_model"]
        decoded = model and live_tokenizer(base64.b64decode(model), "spm.model")
        return {
            "kind": "Marian",
            "pieces": fields[f"{name}_pieces"] or fields["source_pieces"],
            "model": decoded,
            "labels": fields.get("labels", True),
            "start": start,
            "added": longest_first,
        }

    source = side("source", fields.get("source_start"))
    return source | {"target": side("target", None)}


def _check_sentencepiece(proto: Any) -> None:
    """Raises UserError if the page's tokenizer would split text differently.

    Any normalization rule is supported, because the model contains its compiled table.

    Args:
        proto: `sentencepiece.ModelProto` of the vocabulary.
    """
    spec = proto.trainer_spec
    kind = spec.ModelType.Name(spec.model_type)
    user_defined = [p.piece for p in proto.pieces if p.type == p.USER_DEFINED]
    for is_unsupported, option in (
        # A character model is a BPE model without merges.
        (kind not in ("UNIGRAM", "BPE", "CHAR"), f"model_type {kind.lower()}"),
        (spec.treat_whitespace_as_suffix, "treat_whitespace_as_suffix"),
        (not proto.normalizer_spec.escape_whitespaces, "escape_whitespaces off"),
        (user_defined, f"user_defined_symbols ({', '.join(user_defined)})"),
    ):
        if is_unsupported:
            raise _unsupported_error(f"SentencePiece's {option}")


def _unsupported_error(name: str) -> UserError:
    return UserError(f"the live page does not support {name}; {_REMEDY}")
