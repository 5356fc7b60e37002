"""Converts between a model's variables and tensor2tensor's variables."""

import re
from collections.abc import Iterable

import numpy as np

from t2t_repro.interop.tensor2tensor.variable_names import (
    TABLES,
    convert_from_t2t,
    t2t_name,
    t2t_table_scope,
)
from t2t_repro.models.transformer import Transformer
from t2t_repro.models.variables import named_variables

_TABLE = re.compile(r"transformer/symbol_modality_(\d+)_\d+/(\w+)/weights_\d+")


def convert_to_t2t(
    values: dict[str, np.ndarray], norm: str, num_shards: int = 16
) -> dict[str, np.ndarray]:
    """Returns tensor2tensor's variables by name; the inverse of `convert_from_t2t`.

    Args:
        values: Values by our variable names.
        norm: "post" or "pre".
        num_shards: Number of blocks of rows that an embedding table is split into; the
            first V mod `num_shards` blocks are one row longer
            (modalities.py:get_weights).

    Raises:
        KeyError: tensor2tensor lacks a variable.
    """
    t2t = {}
    for name, value in values.items():
        if name in TABLES:
            scope = t2t_table_scope(name, *value.shape)
            for shard, rows in enumerate(np.array_split(value, num_shards)):
                t2t[f"{scope}/weights_{shard}"] = rows
        else:
            t2t[t2t_name(name, norm)] = value
    return t2t


def assign_from_t2t(model: Transformer, t2t: dict[str, np.ndarray], norm: str) -> None:
    """Assigns tensor2tensor's values to a built model.

    Raises KeyError if a variable is missing.
    """
    variables = named_variables(model)
    shapes = {name: tuple(v.shape) for name, v in variables.items()}
    for name, value in convert_from_t2t(t2t, shapes, norm).items():
        variables[name].assign(value)


def vocab_sizes(names: Iterable[str]) -> tuple[int, int]:
    """Returns the source and target vocabulary sizes, read from variable names.

    The sizes include the padding id.
    """
    matches = filter(None, map(_TABLE.fullmatch, names))
    sizes = {match[2]: int(match[1]) for match in matches}
    shared = sizes.get("shared", 0)
    return sizes.get("input_emb", shared), sizes.get("target_emb", shared)
