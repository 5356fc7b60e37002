"""Attention weights of all layers of a model."""

import fnmatch
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from t2t_repro.models.transformer import Transformer


def attention_maps(
    model: Transformer, inputs: tf.Tensor, targets: tf.Tensor
) -> dict[str, tf.Tensor]:
    """Computes the attention weights of every layer for whole sentence pairs.

    Args:
        model: Built model.
        inputs: int32 (batch, source), ending in EOS, 0-padded.
        targets: int32 (batch, target), ending in EOS, 0-padded.

    Returns:
        Attention weights by layer name (``encoder/layer_0/self_attention``,
        ``decoder/layer_0/cross_attention``, ...), float (batch, heads, queries, keys).
        Each query's weights sum to 1.
    """
    maps: dict[str, tf.Tensor] = {}

    def make_attend(
        name: str, attention: Any, **context: Any
    ) -> Callable[..., tf.Tensor]:
        context["return_attention_scores"] = True

        def attend(y: tf.Tensor) -> tf.Tensor:
            y, maps[name] = attention(y, context.pop("memory", y), **context)
            return y

        return attend

    encoder_output, mask = model.encode(inputs)
    x = model.encoder_input(inputs)
    for layer in model.encoder.layers_in_order():
        name = f"encoder/{layer.name}/self_attention"
        record = make_attend(name, layer.self_attention, attention_mask=mask)
        x = layer.apply_sublayers(x, record)
    x = model.decoder_input(targets)
    for layer in model.decoder.layers_in_order():
        name = f"decoder/{layer.name}/self_attention"
        record = make_attend(name, layer.self_attention, use_causal_mask=True)
        name = f"decoder/{layer.name}/cross_attention"
        context = {"memory": encoder_output, "attention_mask": mask}
        record_cross = make_attend(name, layer.cross_attention, **context)
        x = layer.apply_sublayers(x, record, record_cross)
    return maps


def stack_maps(maps: dict[str, tf.Tensor], side: str, attention: str) -> tf.Tensor:
    """Stacks the maps of all layers.

    Args:
        maps: Result of `attention_maps`.
        side: "encoder" or "decoder".
        attention: "self_attention" or "cross_attention".

    Returns:
        float32 (batch, layers, heads, queries, keys).
    """
    names = fnmatch.filter(maps, f"{side}/*/{attention}")
    return tf.stack([tf.cast(maps[name], tf.float32) for name in names], axis=1)
