"""The Transformer (paper section 3, figure 1)."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from t2t_repro.hparams import HParams
from t2t_repro.layers.dropout import Dropout
from t2t_repro.layers.embedding import TargetSpace, TokenEmbedding
from t2t_repro.layers.masks import (
    Packing,
    causal_bias,
    padding_bias,
    segment_bias,
)
from t2t_repro.layers.position import LearnedPosition, sinusoid, sinusoid_paper
from t2t_repro.layers.rows import rows_of, sentences_of
from t2t_repro.layers.stacks import DecoderLayer, EncoderLayer, Stack, StackShape
from t2t_repro.layers.typing import Tensor

Position = Callable[[Tensor], Tensor]


class Transformer(keras.Model):
    """An encoder-decoder Transformer over one shared or two separate vocabularies.

    Args:
        hparams: the sizes and choices of the model.
        vocab_size: V, PAD (0) and EOS (1) included; its tables have as many rows,
            rounded up to a multiple of ``hparams.vocab_divisor``.
        target_vocab_size: V of the target side, when it differs.

    Call arguments:
        inputs: int32 (batch, source), ending in EOS, 0-padded.
        targets: int32 (batch, target), ending in EOS, 0-padded.
        seed: int32 (2,) turns dropout on; None is inference.
        packing: where the examples of packed rows lie; None: one example a row.

    Returns:
        float (batch, target, V): logits of each target symbol given those before.

    References:
        Attention Is All You Need, section 3; tensor2tensor models/transformer.py.
    """

    def __init__(
        self,
        hparams: HParams,
        vocab_size: int,
        target_vocab_size: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=kwargs.pop("name", "transformer"), **kwargs)
        self.d_model = hparams.d_model
        policy = self.dtype_policy
        rows = _rounded_up(vocab_size, hparams.vocab_divisor)
        target_rows = _rounded_up(
            target_vocab_size or vocab_size, hparams.vocab_divisor
        )
        self.vocab_size = target_rows
        self.shared = hparams.share_embeddings and rows == target_rows

        def table(name: str, size: int) -> TokenEmbedding:
            return TokenEmbedding(
                size,
                hparams.d_model,
                hparams.scale_embeddings,
                name=name,
                dtype=policy,
            )

        if self.shared:
            self.embedding = table("embedding", rows)
        else:
            self.input_embedding = table("input_embedding", rows)
            self.target_embedding = table("target_embedding", self.vocab_size)
            self.softmax = table("softmax", self.vocab_size)
        self.target_space = (
            TargetSpace(
                hparams.d_model,
                hparams.target_space_id,
                name="target_space",
                dtype=policy,
            )
            if hparams.target_space_embedding
            else None
        )
        self.input_position = _position(hparams, "input_position", policy)
        self.target_position = _position(hparams, "target_position", policy)
        self.input_dropout = Dropout(
            hparams.dropout, name="input_dropout", dtype=policy
        )
        self.target_dropout = Dropout(
            hparams.dropout, name="target_dropout", dtype=policy
        )
        self.encoder = Stack(
            EncoderLayer,
            _stack_shape(hparams, hparams.num_layers),
            name="encoder",
            dtype=policy,
        )
        self.decoder = Stack(
            DecoderLayer,
            _stack_shape(hparams, hparams.decoder_layers),
            name="decoder",
            dtype=policy,
        )

    def build(self, input_shape: object = None) -> None:
        """Creates every variable, without running the model."""
        for layer in self._layers:
            layer.build()
        self.built = True

    def embed_inputs(self, inputs: Tensor) -> Tensor:
        """Embeds source symbols: int32 (batch, source) -> (batch, source, d_model)."""
        return (self.embedding if self.shared else self.input_embedding)(inputs)

    def embed_targets(self, targets: Tensor) -> Tensor:
        """Embeds target symbols: int32 (batch, target) -> (batch, target, d_model)."""
        return (self.embedding if self.shared else self.target_embedding)(targets)

    def encode(
        self,
        inputs: Tensor,
        seed: Tensor | None = None,
        packing: Packing | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Runs the encoder.

        Args:
            inputs: int32 (batch, source), 0-padded.
            seed: int32 (2,) for dropout, or None.
            packing: of packed rows, or None.

        Returns:
            The encoder's output, float (batch, source, d_model), and the bias that
            hides its padding, or other examples of a packed row, from the decoder:
            float32 (batch, 1, 1, source) or (batch, 1, target, source).
        """
        if packing is None:
            bias = source_bias = padding_bias(inputs)
        else:
            segments = packing.inputs_segmentation
            bias = segment_bias(segments, segments)
            source_bias = segment_bias(packing.targets_segmentation, segments)
        x = self.input_dropout(rows_of(self.encoder_input(inputs, packing)), seed)
        shape = ops.shape(inputs)
        x = self.encoder(x, bias, seed=seed, shape=shape)
        return sentences_of(x, shape), source_bias

    def encoder_input(self, inputs: Tensor, packing: Packing | None = None) -> Tensor:
        """Embeds source symbols, adds the target-space vector and positions.

        Args:
            inputs: int32 (batch, source).
            packing: of packed rows, or None.

        Returns:
            float (batch, source, d_model), before dropout.
        """
        x = self.embed_inputs(inputs)
        if self.target_space is not None:
            x = self.target_space(x)
        positions = None if packing is None else packing.inputs_position
        return _add_position(x, self.input_position, positions)

    def decoder_input(self, targets: Tensor, packing: Packing | None = None) -> Tensor:
        """Embeds targets, shifted right by one place, and adds positions.

        # T2T: the shift is one of embeddings, by a vector of zeros
        (common_layers.py:shift_right_3d), so the first position sees the position
        signal alone; there is no start symbol. PAD embeds to zeros, so that shifting
        the symbols is the same. In a packed row the first symbol of an example sees
        the EOS before it.

        Args:
            targets: int32 (batch, target).
            packing: of packed rows, or None.

        Returns:
            float (batch, target, d_model).
        """
        shifted = ops.pad(targets, ((0, 0), (1, 0)))[:, :-1]
        x = self.embed_targets(shifted)
        positions = None if packing is None else packing.targets_position
        return _add_position(x, self.target_position, positions)

    def step_input(self, ids: Tensor, index: Tensor) -> Tensor:
        """Embeds the symbols that one position reads, for decoding step by step.

        Args:
            ids: int32 (batch, hypotheses); 0 before the first symbol, whose
                embedding is the zero vector that `decoder_input` shifts in.
            index: int32 (), the position.

        Returns:
            float (batch, hypotheses, d_model).
        """
        x = self.embed_targets(ids)
        if self.target_position is None:
            return x
        signal = self.target_position(ops.reshape(index, (1,)))
        return x + ops.expand_dims(ops.cast(signal, x.dtype), 0)

    def decode(
        self,
        targets: Tensor,
        encoder_output: Tensor,
        bias: Tensor,
        seed: Tensor | None = None,
        packing: Packing | None = None,
    ) -> Tensor:
        """Runs the decoder over whole targets (teacher forcing).

        Args:
            targets: int32 (batch, target), 0-padded.
            encoder_output: float (batch, source, d_model).
            bias: float32, as `encode` returns it.
            seed: int32 (2,) for dropout, or None.
            packing: of packed rows, or None.

        Returns:
            float (batch, target, d_model), before the logits product.
        """
        x = self.target_dropout(rows_of(self.decoder_input(targets, packing)), seed)
        shape, memory_shape = ops.shape(targets), ops.shape(encoder_output)[:2]
        self_bias = causal_bias(shape[1])
        if packing is not None:
            segments = packing.targets_segmentation
            self_bias = self_bias + segment_bias(segments, segments)
        x = self.decoder(
            x,
            rows_of(encoder_output),
            self_bias,
            bias,
            seed=seed,
            shape=shape,
            memory_shape=memory_shape,
        )
        return sentences_of(x, shape)

    def logits(self, decoder_output: Tensor) -> Tensor:
        """Multiplies by the softmax table.

        Args:
            decoder_output: float (..., d_model).

        Returns:
            float (..., V).
        """
        return self.softmax_table.logits(decoder_output)

    @property
    def softmax_table(self) -> TokenEmbedding:
        """What makes logits of the decoder's output; it may be the embedding."""
        return self.embedding if self.shared else self.softmax

    def call(
        self,
        inputs: Tensor,
        targets: Tensor,
        seed: Tensor | None = None,
        packing: Packing | None = None,
    ) -> Tensor:
        """Computes the logits of every target position; see the class."""
        encoder_output, bias = self.encode(inputs, seed, packing)
        return self.logits(self.decode(targets, encoder_output, bias, seed, packing))


def named_variables(model: keras.Model) -> dict[str, keras.Variable]:
    """Returns the model's variables by path, without the model's own name.

    Raises:
        ValueError: two variables share a path, or the model holds none.
    """
    prefix = f"{model.name}/"
    named = {v.path.removeprefix(prefix): v for v in model.trainable_variables}
    if not named or len(named) != len(model.trainable_variables):
        raise ValueError(f"variable paths of {model.name} are not unique")
    return named


def _rounded_up(vocab_size: int, divisor: int) -> int:
    return -(-vocab_size // divisor) * divisor


def _stack_shape(hparams: HParams, num_layers: int) -> StackShape:
    return StackShape(
        num_layers=num_layers,
        d_model=hparams.d_model,
        d_ff=hparams.d_ff,
        num_heads=hparams.num_heads,
        d_k=hparams.key_size,
        d_v=hparams.value_size,
        norm=hparams.norm,
        dropout=hparams.dropout,
        attention_dropout=hparams.attention_dropout,
        ffn_dropout=hparams.ffn_dropout,
        max_relative_position=hparams.max_relative_position,
        self_attention_radius=hparams.self_attention_radius,
    )


def _position(hparams: HParams, name: str, policy: object) -> Position | None:
    """Chooses the position signal: a function of positions, or None."""
    if hparams.position == "learned":
        return LearnedPosition(
            hparams.max_position, hparams.d_model, name=name, dtype=policy
        )
    formulas = {"sinusoid": sinusoid, "sinusoid_paper": sinusoid_paper}
    if hparams.position == "none":
        return None
    formula = formulas[hparams.position]
    return lambda positions: formula(positions, hparams.d_model)


def _add_position(
    x: Tensor, position: Position | None, positions: Tensor | None
) -> Tensor:
    """Adds the signal of positions to (batch, length, d_model).

    Args:
        x: float (batch, length, d_model).
        position: the signal.
        positions: int32 (batch, length), or None for 0, 1, ... in every row.
    """
    if position is None:
        return x
    if positions is None:
        positions = ops.expand_dims(ops.arange(ops.shape(x)[1], dtype="int32"), 0)
    return x + ops.cast(position(positions), x.dtype)
