"""The names of our variables in tensor2tensor 1.15.7's checkpoints."""

from collections.abc import Collection, Mapping

import numpy as np

from t2t_repro.interop.stack_weights import StackNames

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


def _stack_names(norm: str) -> StackNames:
    """Returns tensor2tensor's names, whose scope of a norm depends on `norm`."""
    scope = "layer_prepostprocess" if norm == "pre" else "layer_postprocess"
    end = f"/{scope}/layer_norm/layer_norm_{{field}}"
    attention = "self_attention/multihead_attention"
    relative = f"{attention}/dot_product_attention_relative/relative_positions"
    cross = "encdec_attention/multihead_attention"
    return StackNames(
        layer="transformer/body/{side}/layer_{index}/",
        parts={
            "self_attention/query": attention + "/q/{field}",
            "self_attention/key": attention + "/k/{field}",
            "self_attention/value": attention + "/v/{field}",
            "self_attention/output": attention + "/output_transform/{field}",
            "self_attention/relative_keys": f"{relative}_keys/embeddings",
            "self_attention/relative_values": f"{relative}_values/embeddings",
            "self_attention_residual/layer_norm": "self_attention" + end,
            "cross_attention/query": cross + "/q/{field}",
            "cross_attention/key": cross + "/k/{field}",
            "cross_attention/value": cross + "/v/{field}",
            "cross_attention/output": cross + "/output_transform/{field}",
            "cross_attention_residual/layer_norm": "encdec_attention" + end,
            "feed_forward/hidden": "ffn/conv1/{field}",
            "feed_forward/output": "ffn/conv2/{field}",
            "feed_forward_residual/layer_norm": "ffn" + end,
        },
        final_norm="transformer/body/{side}" + end,
    )


def t2t_name(name: str, norm: str) -> str:
    """Returns tensor2tensor's name for a variable of stacks or body; KeyError if none.

    `name` is as in `named_variables`, no embedding table. tensor2tensor's scope of a
    normalisation depends on `norm`, "post" or "pre".
    """
    if name in _TOP:
        return f"transformer/body/{_TOP[name]}"
    return _stack_names(norm).of(name)


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
