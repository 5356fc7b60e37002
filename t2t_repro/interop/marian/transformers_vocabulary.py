"""Reader of the vocabularies in Hugging Face Transformers' format (MarianTokenizer)."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from t2t_repro.interop.embedding_tables import Tables
from t2t_repro.interop.formats.array_store import format_names
from t2t_repro.interop.formats.text import read_json
from t2t_repro.interop.vocabulary import (
    END,
    PADDING,
    UNKNOWN,
    Vocabularies,
    Vocabulary,
    order_vocabulary,
)
from t2t_repro.system.errors import UserError

CONFIG = "config.json"


def read_optional(path: Path) -> dict[str, Any]:
    """Returns the object in a JSON file, empty if the file does not exist."""
    return read_json(path) if path.is_file() else {}


def read_vocabularies(
    folder: Path, config: Mapping[str, Any], tables: Tables
) -> Vocabularies:
    """Reads `vocab.json` and, if it exists, `target_vocab.json`."""
    size = config["vocab_size"]
    for name, rows, value in (
        ("vocab_size", len(tables.source), size),
        ("decoder_vocab_size", len(tables.target), config["decoder_vocab_size"]),
    ):
        if (value or size) != rows:
            raise UserError(
                f"{folder / CONFIG}: {name} is {value or size:,}, but the embedding "
                f"table has {rows:,} rows; the files belong to different models"
            )
    ids, omitted = _added_tokens(folder)
    source = _vocabulary(folder / "vocab.json", tables.source, config, ids)
    source = replace(source, added={token: token in omitted for token in ids})
    path = folder / "target_vocab.json"
    target = _vocabulary(path, tables.target, config) if path.is_file() else None
    if ids and target:
        raise UserError(
            f"--folder {folder}: added tokens ({format_names(ids)}) are only supported "
            f"in models without {path.name}; use the model without them"
        )
    return Vocabularies(source, target)


def _added_tokens(folder: Path) -> tuple[dict[str, Any], set[str]]:
    """Returns the ids of added tokens, and the tokens that decoding omits.

    Transformers cuts added tokens out of texts before SentencePiece. It lists them in
    `tokenizer_config.json`, before version 4.34 in `added_tokens.json`.
    """
    file = folder / "tokenizer_config.json"
    ids, omitted = read_optional(folder / "added_tokens.json"), set()
    entries = read_optional(file).get("added_tokens_decoder") or {}
    for number, entry in entries.items() if isinstance(entries, dict) else ():
        token = entry.get("content") if isinstance(entry, dict) else None
        if not isinstance(token, str):
            raise UserError(
                f"{file}: token {number:.40} of added_tokens_decoder lacks content; "
                "download the file again"
            )
        ids[token] = number
        if entry.get("special"):
            omitted.add(token)
    # Special pieces in a text are encoded as plain text.
    plain = ("", END, UNKNOWN, PADDING)
    return {k: number for k, number in ids.items() if k not in plain}, omitted


def _vocabulary(
    path: Path,
    table: np.ndarray,
    config: Mapping[str, Any],
    added: Mapping[str, Any] | None = None,
) -> Vocabulary:
    """Reads a vocabulary and checks the ids of its special pieces."""
    ids = read_json(path)
    pieces_of = {str(number): piece for piece, number in ids.items()}
    for token, number in (added or {}).items():
        is_row = str(number).isdecimal() and int(number) < len(table)
        if not is_row or pieces_of.get(str(number), token) != token:
            raise UserError(
                f"--folder {path.parent}: the added token {token!r:.40} has the id "
                f"{number!r:.40}, which is not a free row of the embedding; the files "
                "belong to different models"
            )
    vocabulary = order_vocabulary(path, ids | dict(added or {}))
    for name, piece in (("eos_token_id", "</s>"), ("pad_token_id", PADDING)):
        number, pieces = config[name], vocabulary.pieces
        if not 0 <= number < len(pieces) or pieces[number] != piece:
            raise UserError(
                f"{path.with_name(CONFIG)}: {name} is {number}, which in {path.name} "
                f"is not {piece}; the files belong to different models"
            )
    padding = config["pad_token_id"]
    if np.any(table[padding : padding + 1]):
        raise UserError(
            f"--folder {path.parent}: the embedding of {PADDING} must be zero, because "
            "Marian's decoder starts from zeros; other models are not supported"
        )
    return vocabulary
