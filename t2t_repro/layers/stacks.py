"""The encoder and decoder stacks (paper section 3.1)."""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import keras

from t2t_repro.layers.add_and_norm import LayerNormalization, Residual
from t2t_repro.layers.attention import MultiHeadAttention
from t2t_repro.layers.feed_forward import FeedForward
from t2t_repro.layers.functional import Shape, Tensor, apply_layers
from t2t_repro.layers.layer import Layer, select_arguments
from t2t_repro.layers.local_attention import LocalAttention
from t2t_repro.layers.relative import RelativeAttention

Sublayer = Callable[[Tensor], Tensor]


def _self_attention(
    config: dict[str, Any], max_relative_position: int, radius: int, other: dict | None
) -> Any:
    """Creates self-attention: the paper's, one with an option, or a copy of `other`."""
    if other is not None:
        if max_relative_position or radius:
            raise ValueError(
                "self_attention replaces the layer that max_relative_position and "
                "self_attention_radius choose; set either it or these numbers"
            )
        config = config | other["config"] | {k: config[k] for k in ("name", "dtype")}
        # The copy is built with the input shapes of its stack.
        other = other | {"config": config, "build_config": None}
        return keras.saving.deserialize_keras_object(other)
    if max_relative_position:
        options = {"max_relative_position": max_relative_position, "radius": radius}
        return RelativeAttention(**config, **options)
    if radius:
        return LocalAttention(**config, radius=radius)
    return MultiHeadAttention(**config)


class _StackLayer(Layer):
    """Layer of a stack: sub-layers, each with its residual connection."""

    has_cross_attention: ClassVar[bool]

    def __init__(
        self,
        num_heads: int,
        d_k: int,
        d_v: int,
        d_ff: int,
        dropout: float = 0.0,
        norm: str = "post",
        attention_dropout: float = 0.0,
        ffn_dropout: float = 0.0,
        activation: str = "relu",
        attention_bias: bool = False,
        norm_epsilon: float = 1e-6,
        max_relative_position: int = 0,
        self_attention_radius: int = 0,
        *,
        self_attention: keras.layers.Layer | dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        arguments = select_arguments(_StackLayer, locals())
        super().__init__(**kwargs)
        other = keras.saving.serialize_keras_object(self_attention)
        self.arguments = arguments | {"self_attention": other}
        policy = self.dtype_policy
        config: dict[str, Any] = {"num_heads": num_heads, "d_k": d_k, "d_v": d_v}
        config |= {"dropout": attention_dropout, "use_bias": attention_bias}
        config |= {"dtype": policy}
        residual = partial(Residual, dropout, norm, norm_epsilon, dtype=policy)
        self.self_attention = _self_attention(
            config | {"name": "self_attention"},
            max_relative_position,
            self_attention_radius,
            other,
        )
        self.self_attention_residual = residual(name="self_attention_residual")
        if self.has_cross_attention:
            self.cross_attention = MultiHeadAttention(name="cross_attention", **config)
            self.cross_attention_residual = residual(name="cross_attention_residual")
        self.feed_forward = FeedForward(
            d_ff, ffn_dropout, activation, name="feed_forward", dtype=policy
        )
        self.feed_forward_residual = residual(name="feed_forward_residual")


@keras.saving.register_keras_serializable("t2t_repro")
class EncoderLayer(_StackLayer):
    """Encoder layer: self-attention and feed-forward network, each with its residual.

    Args:
        num_heads: Number of heads, h.
        d_k: Number of channels per head of the queries and keys.
        d_v: Number of channels per head of the values.
        d_ff: Number of hidden channels of the feed-forward network.
        dropout: P_drop, the dropout rate of the sub-layers' outputs.
        norm: "post" (paper) or "pre".
        attention_dropout: Dropout rate of the attention weights; 0 in the paper.
        ffn_dropout: Dropout rate of the hidden feed-forward channels; 0 in the paper.
        activation: Activation function of the feed-forward network; see `FeedForward`.
        attention_bias: Whether the projections of the attention have biases.
        norm_epsilon: Constant added to the variance by the normalizations.
        max_relative_position: Distance from which all distances share a vector in
            `RelativeAttention`; 0: without relative positions.
        self_attention_radius: Number of positions on either side that self-attention
            can see; 0: all.
        self_attention: Layer of another class that replaces self-attention; the
            encoder layer copies it. Its form from
            ``keras.saving.serialize_keras_object`` also works and may omit sizes and
            dropout.

    Raises:
        ValueError: ``norm`` or ``activation`` is unknown, or ``self_attention`` is
            combined with one of the numbers.
    """

    has_cross_attention = False

    def build(self, x_shape: Shape) -> None:
        """Builds the sub-layers."""
        self.self_attention.build(x_shape, x_shape)
        self.self_attention_residual.build(x_shape)
        self.feed_forward.build(x_shape)
        self.feed_forward_residual.build(x_shape)

    def apply_sublayers(self, x: Tensor, self_attend: Sublayer) -> Tensor:
        """Applies the sub-layers in sequence (figure 1, left).

        Args:
            x: float (..., d_model).
            self_attend: Self-attention.

        Returns:
            float (..., d_model).
        """
        x = self.self_attention_residual(x, sublayer=self_attend)
        return self.feed_forward_residual(x, sublayer=self.feed_forward)

    def call(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Applies the layer.

        Args:
            x: float (batch, source, d_model).
            attention_mask: bool, true at visible positions, broadcastable to (batch,
                source, source).

        Returns:
            float (batch, source, d_model).
        """
        return self.apply_sublayers(
            x, lambda y: self.self_attention(y, y, attention_mask=attention_mask)
        )


@keras.saving.register_keras_serializable("t2t_repro")
class DecoderLayer(_StackLayer):
    """Decoder layer: masked self-attention, cross-attention and feed-forward network.

    The arguments are those of `EncoderLayer`.
    """

    has_cross_attention = True

    def build(self, x_shape: Shape, encoder_output_shape: Shape) -> None:
        """Builds the sub-layers."""
        self.self_attention.build(x_shape, x_shape)
        self.self_attention_residual.build(x_shape)
        self.cross_attention.build(x_shape, encoder_output_shape)
        self.cross_attention_residual.build(x_shape)
        self.feed_forward.build(x_shape)
        self.feed_forward_residual.build(x_shape)

    def apply_sublayers(
        self,
        x: Tensor,
        self_attend: Sublayer,
        cross_attend: Sublayer,
        feed_forward: Sublayer | None = None,
    ) -> Tensor:
        """Applies the sub-layers in sequence (figure 1, right).

        Training, cached decoding and attention maps pass different functions.

        Args:
            x: float (..., d_model).
            self_attend: Self-attention.
            cross_attend: Attention to the encoder's output.
            feed_forward: Feed-forward network; defaults to that of the layer.

        Returns:
            float (..., d_model).
        """
        x = self.self_attention_residual(x, sublayer=self_attend)
        x = self.cross_attention_residual(x, sublayer=cross_attend)
        return self.feed_forward_residual(x, sublayer=feed_forward or self.feed_forward)

    def call(
        self,
        x: Tensor,
        encoder_output: Tensor,
        attention_mask: Tensor | None = None,
        cross_attention_mask: Tensor | None = None,
    ) -> Tensor:
        """Applies the layer, with a causal mask in self-attention.

        Args:
            x: float (batch, target, d_model).
            encoder_output: float (batch, source, d_model).
            attention_mask: bool, true at visible target positions, broadcastable to
                (batch, target, target). It applies in addition to the causal mask.
            cross_attention_mask: bool, true at visible source positions, broadcastable
                to (batch, target, source).

        Returns:
            float (batch, target, d_model).
        """

        def self_attend(y: Tensor) -> Tensor:
            return self.self_attention(
                y, y, attention_mask=attention_mask, use_causal_mask=True
            )

        def cross_attend(y: Tensor) -> Tensor:
            return self.cross_attention(
                y, encoder_output, attention_mask=cross_attention_mask
            )

        return self.apply_sublayers(x, self_attend, cross_attend)


class _Stack(Layer):
    """N layers, followed by a final normalization in pre-norm.

    The layers are attributes ``layer_0``, ``layer_1``, ... because TensorFlow's
    checkpoints would not find the weights of layers in a Python list.

    Args:
        num_layers: Number of layers, N.
        norm: "post" (paper) or "pre".
        **options: Further arguments of every layer, by name.
    """

    layer_class: ClassVar[type[_StackLayer]]

    def __init__(
        self,
        num_layers: int,
        norm: str = "post",
        *,
        name: str | None = None,
        dtype: Any = None,
        trainable: bool = True,
        **options: Any,
    ) -> None:
        # The layers cast their own inputs.
        super().__init__(name=name, dtype=dtype, trainable=trainable, autocast=False)
        self.num_layers, self.norm = num_layers, norm
        self.arguments = keras.saving.serialize_keras_object(options)
        policy = self.dtype_policy
        shared = {"norm": norm, "dtype": policy, **self.arguments}
        for index in range(num_layers):
            name = f"layer_{index}"
            setattr(self, name, self.layer_class(name=name, **shared))
        epsilon = options.get("norm_epsilon", 1e-6)
        final_norm = LayerNormalization(epsilon, name="final_norm", dtype=policy)
        self.final_norm = final_norm if norm == "pre" else None

    def layers_in_order(self) -> list[Any]:
        """Returns the layers in the order of application."""
        return [getattr(self, f"layer_{index}") for index in range(self.num_layers)]

    def _build(self, *shapes: Shape) -> None:
        for layer in self.layers_in_order():
            layer.build(*shapes)
        if self.final_norm is not None:
            self.final_norm.build(shapes[0])

    def apply(self, x: Tensor, *context: Tensor | None) -> Tensor:
        """Applies all layers to float (batch, length, d_model)."""
        return self.finish(apply_layers(self.layers_in_order(), x, *context))

    def finish(self, x: Tensor) -> Tensor:
        """Applies the final normalization of pre-norm; in post-norm, returns x."""
        return x if self.final_norm is None else self.final_norm(x)


@keras.saving.register_keras_serializable("t2t_repro")
class Encoder(_Stack):
    """Encoder: a stack of encoder layers, called with the arguments of one layer.

    Args:
        num_layers: Number of layers, N.
        norm: "post" (paper) or "pre", which adds a normalization after the last layer.
        **options: Further arguments of `EncoderLayer`, by name.
    """

    layer_class = EncoderLayer

    def build(self, x_shape: Shape) -> None:
        """Builds every layer."""
        self._build(x_shape)

    def call(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Applies all layers; see `EncoderLayer`."""
        return self.apply(x, attention_mask)


@keras.saving.register_keras_serializable("t2t_repro")
class Decoder(_Stack):
    """Decoder: a stack of decoder layers, called with the arguments of one layer.

    Args:
        num_layers: Number of layers, N.
        norm: "post" (paper) or "pre", which adds a normalization after the last layer.
        **options: Further arguments of `DecoderLayer`, by name.
    """

    layer_class = DecoderLayer

    def build(self, x_shape: Shape, encoder_output_shape: Shape) -> None:
        """Builds every layer."""
        self._build(x_shape, encoder_output_shape)

    def call(
        self,
        x: Tensor,
        encoder_output: Tensor,
        attention_mask: Tensor | None = None,
        cross_attention_mask: Tensor | None = None,
    ) -> Tensor:
        """Applies all layers; see `DecoderLayer`."""
        return self.apply(x, encoder_output, attention_mask, cross_attention_mask)
