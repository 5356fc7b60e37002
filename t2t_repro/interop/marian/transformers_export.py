"""Export to Hugging Face Transformers' format, the inverse of `transformers_folder`."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.hparams import HParams
from t2t_repro.hparams.supported import Supported
from t2t_repro.interop.embedding_tables import Tables
from t2t_repro.interop.formats.array_store import Arrays
from t2t_repro.interop.formats.text import own_tables
from t2t_repro.interop.marian import transformers_folder
from t2t_repro.interop.marian.transformers_vocabulary import CONFIG
from t2t_repro.interop.marian.writing import (
    EVERY_VALUE,
    REMEDY,
    REQUIRED,
    check_tokenizer,
    order_rows,
    read_arrays,
)
from t2t_repro.interop.stack_weights import name_stacks
from t2t_repro.models.transformer import Transformer
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.marian_tokenizer import MarianTokenizer
from t2t_repro.tokenizers.tokenizer import PAD_ID, Tokenizer

_TABLES = own_tables(transformers_folder.__file__)
_NAMES = {ours: name for name, ours in transformers_folder.ACTIVATIONS.items()}
_MAX_LENGTH = 512
"""Positions of OPUS-MT's models, and their limit of outputs."""

SUPPORTED = Supported(
    "the Transformers export",
    REMEDY,
    (*EVERY_VALUE, "scale_embeddings"),
    {"activation": [*_NAMES], "position": ("sinusoid", "sinusoid_halves")},
    # Transformers' epsilon is 1e-5. Marian's models run with it, too.
    REQUIRED | {"norm_epsilon": (1e-5, 1e-9)},
)
"""Hyper-parameters of MarianMTModel."""


def write_transformers(
    model: Transformer,
    tokenizer: Tokenizer,
    hparams: HParams,
    search: DecodingConfig,
    languages: tuple[str, str],
    folder: Path,
) -> None:
    """Writes a folder for MarianMTModel and MarianTokenizer.

    The search is that of Transformers. Its limit of outputs does not depend on the
    input; it is 512 tokens if `search` has a factor of the input's length.

    Args:
        model: Built model.
        tokenizer: Tokenizer of the model.
        hparams: Supported hyper-parameters.
        search: Settings of the search.
        languages: Codes of the source and target language.
        folder: Empty folder for the export.

    Raises:
        UserError: Transformers' tokenizer does not support the vocabulary.
    """
    checked = check_tokenizer(tokenizer, SUPPORTED.export)
    rows = _write_tokenizer(checked, languages, folder)
    padding = rows[0].index(PAD_ID)
    limit = _MAX_LENGTH if search.length_factor else search.extra_length + 1
    positions = max(limit, _MAX_LENGTH)
    weights = read_arrays(model)
    arrays = name_stacks(weights, "Transformers", hparams.norm)
    arrays |= _embeddings(Tables.from_variables(weights), rows)
    arrays |= _positions(model, hparams, positions)
    save_file(arrays, folder / "model.safetensors", metadata={"format": "pt"})
    ids = {
        "pad_token_id": padding,
        "decoder_start_token_id": padding,
        "eos_token_id": 0,
        "forced_eos_token_id": 0,
    }
    sizes = {
        "vocab_size": len(rows[0]),
        "decoder_vocab_size": len(rows[1]),
        "max_position_embeddings": positions,
    }
    _write_json(folder / CONFIG, _config(hparams) | sizes | ids)
    never = [padding] if hparams.allow_unknown else [padding, 1]
    generation = {
        "num_beams": search.beam_size,
        "length_penalty": search.alpha,
        "max_length": limit,
        "bad_words_ids": [[number] for number in never],
        "renormalize_logits": True,
    }
    _write_json(folder / "generation_config.json", generation | ids)


def _write_tokenizer(
    tokenizer: MarianTokenizer, languages: tuple[str, str], folder: Path
) -> list[list[int]]:
    """Writes the vocabularies, the SentencePiece models and the tokenizer's settings.

    Returns:
        This package's id of each piece of the source and of the target vocabulary.
    """
    sides = tokenizer, tokenizer.target
    rows = [order_rows(side) for side in sides]
    # <pad> has the same id on both sides: it follows the last piece, or that of the
    # smaller vocabulary.
    padding = min(map(len, rows))
    ids: list[dict[str, int]] = []
    for name, side, order in zip(("source", "target"), sides, rows, strict=True):
        order.insert(padding, PAD_ID)
        ids.append({side.pieces[row]: number for number, row in enumerate(order)})
        if side.piece_model is None:
            raise UserError(
                f"{SUPPORTED.export} does not support pieces of subword-nmt; use "
                "--format marian"
            )
        (folder / f"{name}.spm").write_bytes(side.piece_model)
    is_separate = tokenizer.target_vocab_size is not None
    _write_json(folder / "vocab.json", ids[0])
    if is_separate:
        _write_json(folder / "target_vocab.json", ids[1])
    settings: dict[str, Any] = {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": languages[0],
        "target_lang": languages[1],
        "separate_vocabs": is_separate,
        "model_max_length": _MAX_LENGTH,
    }
    if added := tokenizer.added:
        entry = dict.fromkeys(("lstrip", "rstrip", "normalized", "single_word"), False)
        settings["added_tokens_decoder"] = {
            str(ids[0][token]): {"content": token, "special": special, **entry}
            for token, special in added.items()
        }
        omitted = [token for token, special in added.items() if special]
        settings["additional_special_tokens"] = omitted
    _write_json(folder / "tokenizer_config.json", settings)
    return rows


def _embeddings(tables: Tables, rows: list[list[int]]) -> Arrays:
    """Returns the tables and the softmax bias, in which padding is zero."""

    def reorder(table: np.ndarray, order: list[int]) -> np.ndarray:
        table = table[order]
        table[order.index(PAD_ID)] = 0
        return table

    source, target = rows
    tying = tables.tying()
    arrays = {"final_logits_bias": reorder(tables.bias, target)[np.newaxis]}
    if tying["share_embeddings"]:
        return arrays | {"model.shared.weight": reorder(tables.source, source)}
    arrays["model.encoder.embed_tokens.weight"] = reorder(tables.source, source)
    arrays["model.decoder.embed_tokens.weight"] = reorder(tables.target, target)
    if not tying["tie_target"]:
        arrays["lm_head.weight"] = reorder(tables.softmax, target)
    return arrays


def _positions(model: Transformer, hparams: HParams, length: int) -> Arrays:
    """Returns the tables of positions if they differ from those of Transformers.

    `from_pretrained` reads them, but `save_pretrained` omits them.
    """
    if hparams.position == "sinusoid_halves":
        return {}
    assert model.input_position is not None
    zeros = np.zeros((1, length, hparams.d_model), np.float32)
    table = np.asarray(model.input_position(zeros))[0]
    sides = "encoder", "decoder"
    return {f"model.{side}.embed_positions.weight": table.copy() for side in sides}


def _config(hparams: HParams) -> dict[str, Any]:
    """Returns the settings of the model that its hyper-parameters determine."""
    values = {
        theirs: getattr(hparams, ours) for ours, theirs in _TABLES["equal"].items()
    }
    values["decoder_layers"] = hparams.decoder_layers
    values["decoder_ffn_dim"] = hparams.decoder_d_ff or hparams.d_ff
    shared = hparams.share_embeddings
    return {
        "architectures": ["MarianMTModel"],
        **_TABLES["needed"],
        **values,
        "decoder_attention_heads": hparams.num_heads,
        "activation_function": _NAMES[hparams.activation],
        "share_encoder_decoder_embeddings": shared,
        "tie_word_embeddings": shared or hparams.tie_target,
        "torch_dtype": "float32",
    }


def _write_json(path: Path, values: dict[str, Any]) -> None:
    text = json.dumps(values, ensure_ascii=False, indent=2)
    path.write_text(f"{text}\n", encoding="utf-8")
