"""What every attention of a model looks at."""

import tensorflow as tf

from t2t_repro.layers.attention import MultiHeadAttention
from t2t_repro.layers.masks import causal_bias
from t2t_repro.layers.rows import rows_of
from t2t_repro.layers.typing import Shape
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
    source, target = (tuple(tf.unstack(tf.shape(ids))) for ids in (inputs, targets))
    encoder_output, source_bias = model.encode(inputs)
    memory = rows_of(encoder_output)

    x = rows_of(model.encoder_input(inputs))
    for index, layer in enumerate(model.encoder.layers_in_order()):
        y = layer.self_attention_residual.enter(x)
        name = f"encoder/layer_{index}/self_attention"
        maps[name] = _weights(layer.self_attention, y, y, source, source, source_bias)
        x = layer(x, source_bias, shape=source)

    x = rows_of(model.decoder_input(targets))
    self_bias = causal_bias(tf.shape(targets)[1])
    for index, layer in enumerate(model.decoder.layers_in_order()):
        y = layer.self_attention_residual.enter(x)
        name = f"decoder/layer_{index}/self_attention"
        maps[name] = _weights(layer.self_attention, y, y, target, target, self_bias)
        # The other attention of the layer reads what this one has written.
        y = layer.self_attention(y, y, self_bias, shape=target, memory_shape=target)
        y = layer.cross_attention_residual.enter(layer.self_attention_residual(x, y))
        name = f"decoder/layer_{index}/cross_attention"
        maps[name] = _weights(
            layer.cross_attention, y, memory, target, source, source_bias
        )
        x = layer(x, memory, self_bias, source_bias, shape=target, memory_shape=source)
    return maps


def _weights(
    attention: MultiHeadAttention,
    x: tf.Tensor,
    memory: tf.Tensor,
    shape: Shape,
    memory_shape: Shape,
    bias: tf.Tensor,
) -> tf.Tensor:
    """Computes one attention's weights, float (batch, heads, queries, keys)."""
    query = attention.project_query(x, shape)
    key, _ = attention.project_memory(memory, memory_shape)
    bias = attention.restricted(bias, query)
    return attention.weigh(query, key, bias, attention.distances(query))
