"""The encoder and decoder stacks (paper section 3.1)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import keras
from keras import ops

from t2t_repro.layers.attention import MultiHeadAttention
from t2t_repro.layers.dropout import salt_of, salted
from t2t_repro.layers.feed_forward import FeedForward
from t2t_repro.layers.normalization import LayerNormalization
from t2t_repro.layers.sublayer import Residual
from t2t_repro.layers.traced_once import traced_once
from t2t_repro.layers.typing import Shape, Tensor


@dataclass(frozen=True)
class StackShape:
    """What the layers of one stack have in common.

    Attributes:
        num_layers: N.
        d_model: channels between the sub-layers.
        d_ff: hidden channels of the feed-forward network.
        num_heads: h.
        d_k: channels of a query or a key, per head.
        d_v: channels of a value, per head.
        norm: "post" (paper) or "pre".
        dropout: P_drop of sub-layer outputs (and of the stack's input).
        attention_dropout: the share of attention weights dropped.
        ffn_dropout: the share of hidden feed-forward units dropped.
        max_relative_position: of relative positions in self-attention; 0: none.
        self_attention_radius: positions that self-attention sees on either side; 0:
            all.
    """

    num_layers: int
    d_model: int
    d_ff: int
    num_heads: int
    d_k: int
    d_v: int
    norm: str = "post"
    dropout: float = 0.0
    attention_dropout: float = 0.0
    ffn_dropout: float = 0.0
    max_relative_position: int = 0
    self_attention_radius: int = 0


class _StackLayer(keras.layers.Layer):
    """What encoder and decoder layers share: how sub-layers are made and built."""

    def __init__(self, shape: StackShape, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.shape = shape

    def _self_attention(self) -> MultiHeadAttention:
        shape = self.shape
        return self._attention(
            "self_attention", shape.max_relative_position, shape.self_attention_radius
        )

    def _attention(
        self, name: str, max_relative_position: int = 0, radius: int = 0
    ) -> MultiHeadAttention:
        shape = self.shape
        return MultiHeadAttention(
            shape.num_heads,
            shape.d_model,
            shape.d_k,
            shape.d_v,
            shape.attention_dropout,
            max_relative_position,
            radius,
            name=name,
            dtype=self.dtype_policy,
        )

    def _feed_forward(self) -> FeedForward:
        shape = self.shape
        return FeedForward(
            shape.d_model,
            shape.d_ff,
            shape.ffn_dropout,
            name="feed_forward",
            dtype=self.dtype_policy,
        )

    def _residual(self, name: str) -> Residual:
        shape = self.shape
        return Residual(
            shape.d_model,
            shape.dropout,
            shape.norm,
            name=name,
            dtype=self.dtype_policy,
        )

    def build(self) -> None:
        """Builds every sub-layer."""
        for sublayer in self._layers:
            sublayer.build()
        self.built = True


class EncoderLayer(_StackLayer):
    """Self-attention, then a feed-forward network, each with its residual.

    Args:
        shape: the sizes of the stack.
    """

    def __init__(self, shape: StackShape, **kwargs: Any) -> None:
        super().__init__(shape, **kwargs)
        self.self_attention = self._self_attention()
        self.self_attention_residual = self._residual("self_attention_residual")
        self.feed_forward = self._feed_forward()
        self.feed_forward_residual = self._residual("feed_forward_residual")

    def call(
        self,
        x: Tensor,
        bias: Tensor,
        seed: Tensor | None = None,
        *,
        shape: Shape,
    ) -> Tensor:
        """Applies the layer.

        Args:
            x: float (batch * source, d_model), a row for each position.
            bias: float32 (batch, 1, 1, source) or (batch, 1, source, source).
            seed: int32 (2,) for dropout, or None at inference.
            shape: batch and source.

        Returns:
            float (batch * source, d_model).
        """
        y = self.self_attention_residual.enter(x)
        y = self.self_attention(y, y, bias, seed, shape=shape, memory_shape=shape)
        x = self.self_attention_residual(x, y, seed)
        y = self.feed_forward(self.feed_forward_residual.enter(x), seed)
        return self.feed_forward_residual(x, y, seed)


class DecoderLayer(_StackLayer):
    """Masked self-attention, attention to the encoder, then feed-forward.

    Args:
        shape: the sizes of the stack.
    """

    def __init__(self, shape: StackShape, **kwargs: Any) -> None:
        super().__init__(shape, **kwargs)
        self.self_attention = self._self_attention()
        self.self_attention_residual = self._residual("self_attention_residual")
        self.cross_attention = self._attention("cross_attention")
        self.cross_attention_residual = self._residual("cross_attention_residual")
        self.feed_forward = self._feed_forward()
        self.feed_forward_residual = self._residual("feed_forward_residual")

    def call(
        self,
        x: Tensor,
        encoder_output: Tensor,
        self_bias: Tensor,
        cross_bias: Tensor,
        seed: Tensor | None = None,
        *,
        shape: Shape,
        memory_shape: Shape,
    ) -> Tensor:
        """Applies the layer.

        Args:
            x: float (batch * target, d_model), a row for each position.
            encoder_output: float (batch * source, d_model).
            self_bias: float32, broadcast to (batch, heads, target, target).
            cross_bias: float32, broadcast to (batch, heads, target, source).
            seed: int32 (2,) for dropout, or None at inference.
            shape: batch and target.
            memory_shape: batch and source.

        Returns:
            float (batch * target, d_model).
        """
        y = self.self_attention_residual.enter(x)
        y = self.self_attention(y, y, self_bias, seed, shape=shape, memory_shape=shape)
        x = self.self_attention_residual(x, y, seed)
        y = self.cross_attention_residual.enter(x)
        y = self.cross_attention(
            y, encoder_output, cross_bias, seed, shape=shape, memory_shape=memory_shape
        )
        x = self.cross_attention_residual(x, y, seed)
        y = self.feed_forward(self.feed_forward_residual.enter(x), seed)
        return self.feed_forward_residual(x, y, seed)


class Stack(keras.layers.Layer):
    """N layers, and in pre-norm one more normalisation after the last.

    Layers are attributes ``layer_0``, ``layer_1``, ...: a Python list of layers
    would hide their weights from TensorFlow's own checkpoints.

    Args:
        layer_class: `EncoderLayer` or `DecoderLayer`.
        shape: the sizes of the stack.
    """

    def __init__(
        self, layer_class: type[_StackLayer], shape: StackShape, **kwargs: Any
    ) -> None:
        # What it reads of its layers' variables are their values, not cast.
        super().__init__(autocast=False, **kwargs)
        self.shape = shape
        for index in range(shape.num_layers):
            name = f"layer_{index}"
            layer = layer_class(shape, name=name, dtype=self.dtype_policy)
            setattr(self, name, layer)
        self.final_norm = (
            LayerNormalization(name="final_norm", dtype=self.dtype_policy)
            if shape.norm == "pre"
            else None
        )

    def layers_in_order(self) -> Iterator[_StackLayer]:
        """Yields the layers from the input to the output."""
        for index in range(self.shape.num_layers):
            yield getattr(self, f"layer_{index}")

    def build(self) -> None:
        """Builds every layer."""
        for layer in self.layers_in_order():
            layer.build()
        if self.final_norm is not None:
            self.final_norm.build((None, None, self.shape.d_model))
        self.built = True

    def call(
        self,
        x: Tensor,
        *context: Tensor,
        seed: Tensor | None = None,
        **shapes: Shape,
    ) -> Tensor:
        """Applies all layers.

        It is the first that is called, with the weights of each: layers are alike, so
        that TensorFlow has to trace one of them. Each has a seed of its own.

        Args:
            x: float (batch * length, d_model), a row for each position.
            *context: what each layer takes beside ``x``: the bias for an encoder;
                encoder output, self bias and cross bias for a decoder.
            seed: int32 (2,) for dropout, or None at inference.
            **shapes: `shape`, batch and length; for a decoder also `memory_shape`,
                batch and the encoder output's length.

        Returns:
            float (batch * length, d_model).
        """
        first = next(self.layers_in_order())

        def apply(x: Tensor, weights: list[Tensor], seed: Tensor | None) -> Tensor:
            with keras.StatelessScope(zip(first.variables, weights, strict=True)):
                return first(x, *context, seed=seed, **shapes)

        apply = traced_once(apply)
        for layer in self.layers_in_order():
            weights = [ops.cast(v, v.dtype) for v in layer.variables]
            own = None if seed is None else salted(seed, salt_of(layer))
            x = apply(x, weights, own)
        return self.finish(x)

    def finish(self, x: Tensor) -> Tensor:
        """Applies pre-norm's last normalisation, where there is one."""
        return x if self.final_norm is None else self.final_norm(x)
