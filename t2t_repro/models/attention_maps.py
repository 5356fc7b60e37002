"""What every attention of a model looks at."""

import tensorflow as tf

from t2t_repro.layers.attention import MultiHeadAttention
from t2t_repro.layers.masks import causal_bias
from t2t_repro.layers.relative import distances_within
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
    encoder_output, source_bias = model.encode(inputs)

    x = model.encoder_input(inputs)
    for index, layer in enumerate(model.encoder.layers_in_order()):
        y = layer.self_attention_residual.enter(x)
        name = f"encoder/layer_{index}/self_attention"
        maps[name] = _weights(layer.self_attention, y, y, source_bias)
        x = layer(x, source_bias)

    x = model.decoder_input(targets)
    self_bias = causal_bias(tf.shape(targets)[1])
    for index, layer in enumerate(model.decoder.layers_in_order()):
        y = layer.self_attention_residual.enter(x)
        name = f"decoder/layer_{index}/self_attention"
        maps[name] = _weights(layer.self_attention, y, y, self_bias)
        # The other attention of the layer reads what this one has written.
        y = layer.self_attention(y, y, self_bias)
        y = layer.cross_attention_residual.enter(layer.self_attention_residual(x, y))
        name = f"decoder/layer_{index}/cross_attention"
        maps[name] = _weights(layer.cross_attention, y, encoder_output, source_bias)
        x = layer(x, encoder_output, self_bias, source_bias)
    return maps


def _weights(
    attention: MultiHeadAttention, x: tf.Tensor, memory: tf.Tensor, bias: tf.Tensor
) -> tf.Tensor:
    """Computes one attention's weights, float (batch, heads, queries, keys)."""
    key, _ = attention.project_memory(memory)
    length = tf.shape(x)[1]
    distances = distances_within(length) if attention.is_relative else None
    bias = attention.restricted(bias, length)
    return attention.weigh(attention.project_query(x), key, bias, distances)
