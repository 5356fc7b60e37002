"""The names of our variables in tensor2tensor 1.15.7's checkpoints."""

import re
from collections.abc import Collection, Mapping

import numpy as np

_ATTENTION = {
    "query": "q",
    "key": "k",
    "value": "v",
    "output": "output_transform",
}
_RELATIVE = {"relative_keys": "keys", "relative_values": "values"}
_FEED_FORWARD = {"hidden": "conv1", "output": "conv2"}
_SUBLAYERS = {
    "self_attention": "self_attention",
    "cross_attention": "encdec_attention",
    "feed_forward": "ffn",
}
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

_KERNEL = re.compile(r"(encoder|decoder)/layer_(\d+)/(\w+?)(_residual)?/(\w+)/(\w+)")


def t2t_name(name: str, norm: str) -> str:
    """Returns tensor2tensor's name for a variable of stacks or body; KeyError if none.

    `name` is as in `named_variables`, no embedding table. tensor2tensor's scope of a
    normalisation depends on `norm`, "post" or "pre".
    """
    body = "transformer/body"
    if name in _TOP:
        return f"{body}/{_TOP[name]}"
    side, _, rest = name.partition("/")
    scope = "layer_postprocess" if norm == "post" else "layer_prepostprocess"
    if rest.startswith("final_norm/"):
        field = rest.removeprefix("final_norm/")
        return f"{body}/{side}/{scope}/layer_norm/layer_norm_{field}"
    match = _KERNEL.fullmatch(name)
    if match is None:
        raise KeyError(name)
    side, index, sublayer, residual, part, field = match.groups()
    layer = f"{body}/{side}/layer_{index}/{_SUBLAYERS[sublayer]}"
    if residual:
        return f"{layer}/{scope}/layer_norm/layer_norm_{field}"
    if sublayer == "feed_forward":
        return f"{layer}/{_FEED_FORWARD[part]}/{field}"
    if part in _RELATIVE:
        scope = f"relative_positions_{_RELATIVE[part]}/embeddings"
        return f"{layer}/multihead_attention/dot_product_attention_relative/{scope}"
    return f"{layer}/multihead_attention/{_ATTENTION[part]}/{field}"


def t2t_table_scope(name: str, vocab_size: int, d_model: int) -> str:
    """Returns the scope of the shards of a table, one of `TABLES`."""
    return f"transformer/symbol_modality_{vocab_size}_{d_model}/{TABLES[name]}"


def t2t_variables_of(
    shapes: Mapping[str, tuple[int, ...]], norm: str, found: Collection[str]
) -> dict[str, tuple[int, ...]]:
    """Returns the variables of tensor2tensor that make up a model, name -> shape.

    A table lies in shards, contiguous blocks of rows; where they cannot be equal, the
    first ones have one row more (modalities.py:get_weights). `found`, the names in the
    checkpoint, tells how many.
    """
    wanted = {}
    for name, shape in shapes.items():
        if name not in TABLES:
            wanted[t2t_name(name, norm)] = shape
            continue
        scope = t2t_table_scope(name, *shape)
        count = _count_shards(scope, found)
        for shard in range(count):
            rows = shape[0] // count + (shard < shape[0] % count)
            wanted[f"{scope}/weights_{shard}"] = (rows, *shape[1:])
    return wanted


def from_t2t(
    t2t: Mapping[str, np.ndarray], shapes: Mapping[str, tuple[int, ...]], norm: str
) -> dict[str, np.ndarray]:
    """Returns the model's values by our names; KeyError if a variable is missing."""
    values = {}
    for name, shape in shapes.items():
        if name in TABLES:
            scope = t2t_table_scope(name, *shape)
            count = _count_shards(scope, t2t)
            shards = [t2t[f"{scope}/weights_{i}"] for i in range(count)]
            values[name] = np.concatenate(shards)
        else:
            values[name] = t2t[t2t_name(name, norm)]
    return values


def _count_shards(scope: str, names: Collection[str]) -> int:
    """Returns how many shards a table has; 1 where there is none, as it is missing."""
    return sum(name.startswith(f"{scope}/weights_") for name in names) or 1
