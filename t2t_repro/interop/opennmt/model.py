"""OpenNMT-tf's Transformer by its variables (opennmt/models/transformer.py)."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from t2t_repro.interop.embedding_tables import Tables
from t2t_repro.interop.formats.array_store import ArrayStore
from t2t_repro.interop.opennmt.description import Description
from t2t_repro.interop.vocabulary import UNKNOWN, Vocabularies
from t2t_repro.system.errors import UserError

NORM_EPSILON = 1e-3
"""Keras' default for LayerNormalization, which OpenNMT-tf does not change."""

_SOURCE = "examples_inputter/features_inputter/embedding"
_TARGET = "examples_inputter/labels_inputter/embedding"
_OUTPUT = "decoder/output_layer"


def described_model(store: ArrayStore) -> dict[str, Any]:
    """Returns the hyper-parameters that the variables determine.

    Raises UserError if they are not those of a Transformer.
    """
    table = store.shape(_SOURCE)
    if table is None or len(table) != 2:
        raise UserError(
            f"{store.file} has no {_SOURCE}; models that read no words, or "
            "several sources, are not supported here"
        )
    widths: dict[str, list[int]] = {"encoder": [], "decoder": []}
    for side, found in widths.items():
        while shape := store.shape(
            f"{side}/layers/{len(found)}/ffn/layer/inner/kernel"
        ):
            found.append(shape[-1])
        if not found:
            raise UserError(
                f"{store.file} has no {side}/layers/0; RNNs and other models than the "
                "Transformer are not supported here"
            )
    attention = "encoder/layers/0/self_attention/layer"
    relative = store.shape(f"{attention}/relative_position_keys")
    return {
        "d_model": table[1],
        "d_ff": widths["encoder"][0],
        "decoder_d_ff": widths["decoder"][0],
        "num_layers": len(widths["encoder"]),
        "num_decoder_layers": len(widths["decoder"]),
        "norm": "pre" if store.key("encoder/layer_norm/gamma") else "post",
        "norm_epsilon": NORM_EPSILON,
        "attention_bias": store.key(f"{attention}/linear_keys/bias") is not None,
        "max_relative_position": 0 if relative is None else (relative[0] - 1) // 2,
        "scale_embeddings": True,
        "softmax_bias": True,
        "target_space_embedding": False,
        "tokenizer": "marian",
    }


def check(
    store: ArrayStore, description: Description, hparams: Mapping[str, Any]
) -> None:
    """Raises UserError if the description is of another model than the variables."""
    layers = description["num_layers"]
    far = description["maximum_relative_position"]
    for name, given, actual in (
        ("num_units", description["num_units"], hparams["d_model"]),
        ("ffn_inner_dim", description["ffn_inner_dim"], hparams["d_ff"]),
        (
            "num_layers",
            [*layers] if isinstance(layers, list | tuple) else [layers] * 2,
            [hparams["num_layers"], hparams["num_decoder_layers"]],
        ),
        ("pre_norm", description["pre_norm"], hparams["norm"] == "pre"),
        ("maximum_relative_position", far or 0, hparams["max_relative_position"]),
    ):
        if given != actual:
            raise UserError(
                f"{description.where} says {name}={given}, but in {store.file} it is "
                f"{actual}; give --model, the description of this model"
            )


def tables(store: ArrayStore, d_model: int, vocabularies: Vocabularies) -> Tables:
    """Takes the tables and the softmax's bias."""
    keys = [store.key(name) for name in (_SOURCE, _TARGET, f"{_OUTPUT}/kernel")]
    source_side, target_side = vocabularies.sides
    for path, side in ((_SOURCE, source_side), (_TARGET, target_side)):
        rows = (store.shape(path) or (0,))[0]
        if rows != len(side.pieces):
            raise UserError(
                f"{side.file} has {len(side.pieces):,} pieces with {UNKNOWN}, but "
                f"{path} in {store.file} {rows:,} rows; they belong to different models"
            )
    if keys[0] == keys[1] and vocabularies.target is not None:
        raise UserError(
            f"{source_side.file} and {target_side.file} differ, but {store.file} has "
            "one table for both; they belong to different models"
        )
    rows = len(target_side.pieces)
    source = store.take(_SOURCE, None, d_model)
    target = source if keys[0] == keys[1] else store.take(_TARGET, None, d_model)
    softmax = target
    if keys[2] != keys[1]:
        softmax = store.take(f"{_OUTPUT}/kernel", d_model, rows).T
    bias = store.take_optional(f"{_OUTPUT}/bias", rows)
    if bias is None:
        bias = np.zeros(rows, np.float32)
    return Tables(source, target, softmax, bias)
