"""What every attention of a model looks at."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from t2t_repro.models.transformer import Transformer


def attention_maps(
    model: Transformer, inputs: tf.Tensor, targets: tf.Tensor
) -> dict[str, tf.Tensor]:
    """Computes the attention weights of every layer for whole sentence pairs.

    Args:
        model: the model, already built.
        inputs: int32 (batch, source), ending in EOS, 0-padded.
        targets: int32 (batch, target), ending in EOS, 0-padded.

    Returns:
        By name (``encoder/layer_0/self_attention``,
        ``decoder/layer_0/cross_attention``, ...) float (batch, heads, queries,
        keys); a query's row sums to 1.
    """
    maps: dict[str, tf.Tensor] = {}

    def noting(name: str, attention: Any, **context: Any) -> Callable[..., tf.Tensor]:
        def self_attend(y: tf.Tensor) -> tf.Tensor:
            memory = context.pop("memory", y)
            y, maps[name] = attention(
                y, memory, return_attention_scores=True, **context
            )
            return y

        return self_attend

    encoder_output, mask = model.encode(inputs)
    x = model.encoder_input(inputs)
    for layer in model.encoder.layers_in_order():
        name = f"encoder/{layer.name}/self_attention"
        x = layer.apply_sublayers(
            x, noting(name, layer.self_attention, attention_mask=mask)
        )
    x = model.decoder_input(targets)
    for layer in model.decoder.layers_in_order():
        name = f"decoder/{layer.name}"
        x = layer.apply_sublayers(
            x,
            noting(
                f"{name}/self_attention", layer.self_attention, use_causal_mask=True
            ),
            noting(
                f"{name}/cross_attention",
                layer.cross_attention,
                memory=encoder_output,
                attention_mask=mask,
            ),
        )
    return maps
