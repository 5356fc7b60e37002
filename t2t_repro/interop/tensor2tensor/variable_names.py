"""The names of our variables in tensor2tensor 1.15.7's checkpoints."""

from collections.abc import Collection, Mapping

import numpy as np

from t2t_repro.interop.stack_weights import stack_name

_TOP = {
    "target_space/table": "target_space_embedding/kernel",
    "input_position/table": "inputs_positional_embedding",
    "target_position/table": "targets_positional_embedding",
}
TABLES = {
    "embedding/table": "shared",
    "input_embedding/table": "input_emb",
    "target_embedding/table": "target_emb",
    "softmax/table": "softmax",
}
"""Our embedding tables -> tensor2tensor's names of them."""


def t2t_name(name: str, norm: str) -> str:
    """Returns tensor2tensor's name for a variable of stacks or body; KeyError if none.

    `name` is as in `named_variables`, no embedding table. tensor2tensor's scope of a
    normalisation depends on `norm`, "post" or "pre".
    """
    if name in _TOP:
        return f"transformer/body/{_TOP[name]}"
    return stack_name("tensor2tensor", name, norm)


def t2t_table_scope(name: str, vocab_size: int, d_model: int) -> str:
    """Returns the scope of the shards of a table, one of `TABLES`."""
    return f"transformer/symbol_modality_{vocab_size}_{d_model}/{TABLES[name]}"


def t2t_variables_of(
    shapes: Mapping[str, tuple[int, ...]], norm: str, found: Collection[str]
) -> dict[str, tuple[int, ...]]:
    """Returns the variables of tensor2tensor that make up a model, name -> shape.

    `found` has the names in the checkpoint, which determine the number of shards.
    """
    wanted: dict[str, tuple[int, ...]] = {}
    for name, shape in shapes.items():
        wanted |= _parts(name, shape, norm, found)
    return wanted


def from_t2t(
    t2t: Mapping[str, np.ndarray], shapes: Mapping[str, tuple[int, ...]], norm: str
) -> dict[str, np.ndarray]:
    """Returns the model's values by our names; KeyError if a variable is missing."""
    values = {}
    for name, shape in shapes.items():
        first, *others = (t2t[part] for part in _parts(name, shape, norm, t2t))
        values[name] = np.concatenate([first, *others]) if others else first
    return values


def _parts(
    name: str, shape: tuple[int, ...], norm: str, found: Collection[str]
) -> dict[str, tuple[int, ...]]:
    """Returns the variables of tensor2tensor that make up one of ours.

    A table lies in shards, contiguous blocks of rows; where they cannot be equal, the
    first ones have one row more (modalities.py:get_weights). A missing table counts as
    one shard.
    """
    if name not in TABLES:
        return {t2t_name(name, norm): shape}
    scope = t2t_table_scope(name, *shape)
    count = sum(each.startswith(f"{scope}/weights_") for each in found) or 1
    rows, longer = divmod(shape[0], count)
    return {
        f"{scope}/weights_{shard}": (rows + (shard < longer), *shape[1:])
        for shard in range(count)
    }
