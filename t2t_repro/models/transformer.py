"""The Transformer (paper section 3, figure 1)."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from t2t_repro.hparams import HParams
from t2t_repro.layers.dropout import Dropout
from t2t_repro.layers.embedding import TargetSpace, TokenEmbedding
from t2t_repro.layers.masks import causal_bias, padding_bias
from t2t_repro.layers.position import LearnedPosition, sinusoid, sinusoid_paper
from t2t_repro.layers.stacks import DecoderLayer, EncoderLayer, Stack, StackShape
from t2t_repro.layers.typing import Tensor

Position = Callable[[Tensor], Tensor]


class Transformer(keras.Model):
    """An encoder-decoder Transformer over one shared or two separate vocabularies.

    Args:
        hparams: the sizes and choices of the model.
        vocab_size: V, PAD (0) and EOS (1) included.
        target_vocab_size: V of the target side, when it differs.

    Call arguments:
        inputs: int32 (batch, source), ending in EOS, 0-padded.
        targets: int32 (batch, target), ending in EOS, 0-padded.
        seed: int32 (2,) turns dropout on; None is inference.

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
        self.vocab_size = target_vocab_size or vocab_size
        policy = self.dtype_policy
        self.shared = hparams.share_embeddings and self.vocab_size == vocab_size

        def table(name: str, size: int) -> TokenEmbedding:
            return TokenEmbedding(size, hparams.d_model, name=name, dtype=policy)

        if self.shared:
            self.embedding = table("embedding", vocab_size)
        else:
            self.input_embedding = table("input_embedding", vocab_size)
            self.target_embedding = table("target_embedding", self.vocab_size)
            self.softmax = table("softmax", self.vocab_size)
        self.target_space = (
            TargetSpace(hparams.d_model, name="target_space", dtype=policy)
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
        self, inputs: Tensor, seed: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Runs the encoder.

        Args:
            inputs: int32 (batch, source), 0-padded.
            seed: int32 (2,) for dropout, or None.

        Returns:
            The encoder's output, float (batch, source, d_model), and the bias that
            hides padding, float32 (batch, 1, 1, source).
        """
        bias = padding_bias(inputs)
        x = self.embed_inputs(inputs)
        if self.target_space is not None:
            x = self.target_space(x)
        x = _add_position(x, self.input_position)
        x = self.input_dropout(x, seed)
        return self.encoder(x, bias, seed=seed), bias

    def decoder_input(self, targets: Tensor) -> Tensor:
        """Embeds targets, shifts them right by one vector of zeros, adds positions.

        # T2T: the shift is one of embeddings (common_layers.py:shift_right_3d), so
        the first position sees the position signal alone; there is no start symbol.

        Args:
            targets: int32 (batch, target).

        Returns:
            float (batch, target, d_model).
        """
        x = self.embed_targets(targets)
        shifted = ops.pad(x, ((0, 0), (1, 0), (0, 0)))[:, :-1]
        return _add_position(shifted, self.target_position)

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
    ) -> Tensor:
        """Runs the decoder over whole targets (teacher forcing).

        Args:
            targets: int32 (batch, target), 0-padded.
            encoder_output: float (batch, source, d_model).
            bias: float32 (batch, 1, 1, source).
            seed: int32 (2,) for dropout, or None.

        Returns:
            float (batch, target, d_model), before the logits product.
        """
        x = self.target_dropout(self.decoder_input(targets), seed)
        self_bias = causal_bias(ops.shape(targets)[1])
        return self.decoder(x, encoder_output, self_bias, bias, seed=seed)

    def logits(self, decoder_output: Tensor) -> Tensor:
        """Multiplies by the softmax table: (..., d_model) -> (..., V)."""
        return (self.embedding if self.shared else self.softmax).logits(decoder_output)

    def call(
        self, inputs: Tensor, targets: Tensor, seed: Tensor | None = None
    ) -> Tensor:
        """Computes the logits of every target position; see the class."""
        encoder_output, bias = self.encode(inputs, seed)
        return self.logits(self.decode(targets, encoder_output, bias, seed))


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


def _add_position(x: Tensor, position: Position | None) -> Tensor:
    """Adds the signal of positions 0, 1, ... to (batch, length, d_model)."""
    if position is None:
        return x
    positions = ops.arange(ops.shape(x)[1], dtype="int32")
    return x + ops.expand_dims(ops.cast(position(positions), x.dtype), 0)
