"""Names of this package's variables in checkpoints of tensor2tensor 1.15.7."""

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
"""Names of embedding tables -> tensor2tensor's names."""


def t2t_name(name: str, norm: str) -> str:
    """Returns tensor2tensor's name of a variable other than the embedding tables.

    Args:
        name: Name in `named_variables`.
        norm: Placement of the layer normalization, "post" or "pre", which affects
            tensor2tensor's scopes.

    Raises:
        KeyError: tensor2tensor lacks this variable.
    """
    if name in _TOP:
        return f"transformer/body/{_TOP[name]}"
    return stack_name("tensor2tensor", name, norm)


def t2t_table_scope(name: str, vocab_size: int, d_model: int) -> str:
    """Returns tensor2tensor's scope of the shards of an embedding table.

    Args:
        name: Key of `TABLES`.
        vocab_size: Number of rows.
        d_model: Number of columns.
    """
    return f"transformer/symbol_modality_{vocab_size}_{d_model}/{TABLES[name]}"


def list_t2t_shapes(
    shapes: Mapping[str, tuple[int, ...]], norm: str, t2t_names: Collection[str]
) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of a model's variables by tensor2tensor's names.

    Args:
        shapes: Shapes by this package's names.
        norm: Placement of the layer normalization, "post" or "pre".
        t2t_names: Names in the checkpoint, which determine the number of shards.
    """
    t2t_shapes: dict[str, tuple[int, ...]] = {}
    for name, shape in shapes.items():
        t2t_shapes |= _t2t_shapes(name, shape, norm, t2t_names)
    return t2t_shapes


def convert_from_t2t(
    t2t: Mapping[str, np.ndarray], shapes: Mapping[str, tuple[int, ...]], norm: str
) -> dict[str, np.ndarray]:
    """Returns the model's values by this package's names.

    Args:
        t2t: Values by tensor2tensor's names.
        shapes: Shapes by this package's names.
        norm: Placement of the layer normalization, "post" or "pre".

    Raises:
        KeyError: A variable is missing.
    """
    values = {}
    for name, shape in shapes.items():
        first, *others = (t2t[part] for part in _t2t_shapes(name, shape, norm, t2t))
        values[name] = np.concatenate([first, *others]) if others else first
    return values


def _t2t_shapes(
    name: str, shape: tuple[int, ...], norm: str, t2t_names: Collection[str]
) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of the tensor2tensor variables that form one variable.

    An embedding table is stored in shards of consecutive rows. If the number of
    rows is not a multiple of the number of shards, the first shards have one more row
    (modalities.py:get_weights). A missing table counts as one shard.
    """
    if name not in TABLES:
        return {t2t_name(name, norm): shape}
    scope = t2t_table_scope(name, *shape)
    count = sum(each.startswith(f"{scope}/weights_") for each in t2t_names) or 1
    rows, longer = divmod(shape[0], count)
    return {
        f"{scope}/weights_{shard}": (rows + (shard < longer), *shape[1:])
        for shard in range(count)
    }
