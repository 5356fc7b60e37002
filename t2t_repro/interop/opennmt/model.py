"""Hyper-parameters and embeddings of OpenNMT-tf's Transformer from its variables.

The names of the variables come from opennmt/models/transformer.py.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from t2t_repro.interop.embedding_tables import Tables
from t2t_repro.interop.formats.array_store import ArrayStore
from t2t_repro.interop.opennmt.description import Description
from t2t_repro.interop.vocabulary import Vocabularies
from t2t_repro.system.errors import UserError

NORM_EPSILON = 1e-3
"""Epsilon of OpenNMT-tf's layer normalization, the default of Keras."""

_SOURCE = "examples_inputter/features_inputter/embedding"
_TARGET = "examples_inputter/labels_inputter/embedding"
_OUTPUT = "decoder/output_layer"


def infer_hparams(store: ArrayStore) -> dict[str, Any]:
    """Returns the hyper-parameters that the variables determine.

    Raises:
        UserError: The variables are not those of a supported Transformer.
    """
    table = store.shape(_SOURCE)
    if table is None or len(table) != 2:
        raise UserError(
            f"{store.file} lacks {_SOURCE}; only models with one source of words are "
            "supported"
        )
    widths: dict[str, list[int]] = {"encoder": [], "decoder": []}
    for side, sizes in widths.items():
        while shape := store.shape(
            f"{side}/layers/{len(sizes)}/ffn/layer/inner/kernel"
        ):
            sizes.append(shape[-1])
        if not sizes:
            raise UserError(
                f"{store.file} lacks {side}/layers/0; only Transformer models are "
                "supported"
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


def check_description(
    store: ArrayStore, description: Description, hparams: Mapping[str, Any]
) -> None:
    """Raises UserError if the description contradicts the variables."""
    layers = description["num_layers"]
    distance = description["maximum_relative_position"]
    for name, value, actual in (
        ("num_units", description["num_units"], hparams["d_model"]),
        ("ffn_inner_dim", description["ffn_inner_dim"], hparams["d_ff"]),
        (
            "num_layers",
            [*layers] if isinstance(layers, list | tuple) else [layers] * 2,
            [hparams["num_layers"], hparams["num_decoder_layers"]],
        ),
        ("pre_norm", description["pre_norm"], hparams["norm"] == "pre"),
        ("maximum_relative_position", distance or 0, hparams["max_relative_position"]),
    ):
        if value != actual:
            raise UserError(
                f"{description.where}: {name} is {value}, but in {store.file} it is "
                f"{actual}; give the description of this model with --model"
            )


def embedding_tables(
    store: ArrayStore, d_model: int, vocabularies: Vocabularies
) -> Tables:
    """Returns the embedding tables and the softmax bias.

    Raises:
        UserError: The tables are missing, or the vocabularies differ although both
            sides share a table.
    """
    keys = [store.key(name) for name in (_SOURCE, _TARGET, f"{_OUTPUT}/kernel")]
    if keys[0] == keys[1] and vocabularies.target is not None:
        raise UserError(
            f"{vocabularies.source.file} and {vocabularies.target.file} differ, but "
            f"{store.file} has one table for both; the files belong to different models"
        )
    source = store.take(_SOURCE, None, d_model)
    target = source if keys[0] == keys[1] else store.take(_TARGET, None, d_model)
    softmax = target
    if keys[2] != keys[1]:
        softmax = store.take(f"{_OUTPUT}/kernel", d_model, None).T
    bias = store.take_optional(f"{_OUTPUT}/bias", len(softmax))
    if bias is None:
        bias = np.zeros(len(softmax), np.float32)
    return Tables(source, target, softmax, bias)
