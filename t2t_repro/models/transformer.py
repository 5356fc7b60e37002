"""The Transformer (paper section 3, figure 1)."""

from functools import partial
from typing import Any, Self

import keras
from keras import ops

from t2t_repro import hparams as hparam_sets
from t2t_repro.hparams import HParams
from t2t_repro.layers.dropout import Dropout
from t2t_repro.layers.embedding import TargetSpace, TokenEmbedding
from t2t_repro.layers.functional import Tensor
from t2t_repro.layers.layer import arguments_of
from t2t_repro.layers.masks import padding_mask
from t2t_repro.layers.position import LearnedPosition, PositionalEncoding
from t2t_repro.layers.stacks import Decoder, Encoder, EncoderLayer


@keras.saving.register_keras_serializable("t2t_repro")
class Transformer(keras.Model):
    """An encoder-decoder Transformer over one shared or two separate vocabularies.

    The defaults are the paper's base model.

    Args:
        vocab_size: rows of the tables, PAD (0) and EOS (1) included.
        target_vocab_size: rows on the target side, when they differ.
        d_model: channels between the sub-layers.
        num_layers: N, of the encoder.
        num_decoder_layers: of the decoder; None: as many.
        num_heads: h.
        d_k: channels of a query or a key, per head; None: d_model / h.
        d_v: channels of a value, per head; None: d_model / h.
        d_ff: hidden channels of the feed-forward networks.
        dropout: P_drop of sub-layer outputs and of the stacks' inputs.
        norm: "post" (paper) or "pre".
        position: a formula of `layers.PositionalEncoding`, "learned" or "none".
        max_position: rows of a learned table of positions.
        share_embeddings: one table for inputs, targets and logits, where both sides
            have as many rows.
        scale_embeddings: whether embeddings are multiplied by sqrt(d_model).
        target_space_embedding: adds a trained vector to every source position.
        target_space_id: which of its rows.
        tie_target: one table for targets and logits where inputs have another.
        source_end: whether the encoder sees the EOS of the source.
        decoder_d_ff: d_ff of the decoder; None: that of the encoder.
        softmax_bias: whether each symbol's logit has a bias.
        start_symbol: the id in front of the targets; 0: a vector of zeros.
        **options: the other arguments of `layers.EncoderLayer`, by name.

    Call arguments:
        inputs: ``{"inputs": ..., "targets": ...}``, int32 (batch, source) and
            (batch, target), each row ending in EOS and padded with 0.
        training: whether to drop.

    Returns:
        float (batch, target, V): logits of each target symbol given those before.

    References:
        Attention Is All You Need, section 3; tensor2tensor models/transformer.py.
    """

    def __init__(
        self,
        vocab_size: int,
        target_vocab_size: int | None = None,
        d_model: int = 512,
        num_layers: int = 6,
        num_decoder_layers: int | None = None,
        num_heads: int = 8,
        d_k: int | None = None,
        d_v: int | None = None,
        d_ff: int = 2048,
        dropout: float = 0.1,
        norm: str = "post",
        position: str = "sinusoid",
        max_position: int = 256,
        share_embeddings: bool = True,
        scale_embeddings: bool = True,
        target_space_embedding: bool = False,
        target_space_id: int = 0,
        tie_target: bool = False,
        source_end: bool = True,
        decoder_d_ff: int | None = None,
        softmax_bias: bool = False,
        start_symbol: int = 0,
        *,
        name: str = "transformer",
        dtype: Any = None,
        trainable: bool = True,
        **options: Any,
    ) -> None:
        names = arguments_of(Transformer)
        arguments = {name: value for name, value in locals().items() if name in names}
        super().__init__(name=name, dtype=dtype, trainable=trainable)
        self.d_model = d_model
        self.vocab_size = target_vocab_size or vocab_size
        self.source_end = source_end
        self.shared = share_embeddings and self.vocab_size == vocab_size
        policy = self.dtype_policy
        table = partial(
            TokenEmbedding, d_model=d_model, scale=scale_embeddings, dtype=policy
        )
        target_table = partial(table, self.vocab_size, start_symbol=start_symbol)
        self.target_embedding = None
        if self.shared:
            self.embedding = target_table(use_bias=softmax_bias, name="embedding")
        else:
            self.input_embedding = table(vocab_size, name="input_embedding")
            if not tie_target:
                self.target_embedding = target_table(name="target_embedding")
            self.softmax = target_table(use_bias=softmax_bias, name="softmax")
        self.target_space = None
        if target_space_embedding:
            self.target_space = TargetSpace(
                target_space_id, name="target_space", dtype=policy
            )
        self.input_position = self.target_position = None
        if position != "none":
            signal = partial(PositionalEncoding, position, dtype=policy)
            if position == "learned":
                signal = partial(LearnedPosition, max_position, dtype=policy)
            self.input_position = signal(name="input_position")
            self.target_position = signal(name="target_position")
        self.input_dropout = Dropout(dropout, name="input_dropout", dtype=policy)
        self.target_dropout = Dropout(dropout, name="target_dropout", dtype=policy)
        depth = d_model // num_heads
        options |= {"num_heads": num_heads, "d_k": d_k or depth, "d_v": d_v or depth}
        options |= {"dropout": dropout, "dtype": policy}
        self.encoder = Encoder(num_layers, norm, d_ff=d_ff, name="encoder", **options)
        layers, d_ff = num_decoder_layers or num_layers, decoder_d_ff or d_ff
        self.decoder = Decoder(layers, norm, d_ff=d_ff, name="decoder", **options)
        self._config = self.decoder.layer_options | arguments

    @classmethod
    def from_hparams(
        cls,
        hparams: str | HParams,
        vocab_size: int,
        target_vocab_size: int | None = None,
        **changes: Any,
    ) -> Self:
        """Makes the model of a set of hyper-parameters.

        Args:
            hparams: a set, or its name: "base", "big,dropout=0.2".
            vocab_size: V, PAD (0) and EOS (1) included; the tables have as many rows,
                rounded up to a multiple of the set's ``vocab_divisor``.
            target_vocab_size: V of the target side, when it differs.
            **changes: arguments of the model that differ from the set's.

        Raises:
            UserError: there is no such set, or it is damaged.
        """
        if isinstance(hparams, str):
            hparams = hparam_sets.load(hparams)
        names = arguments_of(Transformer)[2:] + arguments_of(EncoderLayer)
        arguments = {name: getattr(hparams, name) for name in names} | changes
        target_rows = hparams.table_rows(target_vocab_size or vocab_size)
        return cls(hparams.table_rows(vocab_size), target_rows, **arguments)

    def build(self, input_shape: object = None) -> None:
        """Creates every variable, without running the model."""
        shape = (None, None, self.d_model)
        for layer in self.layers:
            if layer is not self.decoder:
                layer.build(shape)
        self.decoder.build(shape, shape)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments that make the model again, without its weights."""
        return super().get_config() | self._config

    def call(self, inputs: dict[str, Tensor], training: bool | None = None) -> Tensor:
        """Computes the logits of every target position; see the class."""
        encoder_output, mask = self.encode(inputs["inputs"])
        return self.logits(self.decode(inputs["targets"], encoder_output, mask))

    def compute_loss(
        self, x: Any = None, y: Any = None, *args: Any, **kwargs: Any
    ) -> Tensor:
        """Lets `fit` take the targets for labels where a dataset has no others."""
        y = x["targets"] if y is None else y
        return super().compute_loss(x, y, *args, **kwargs)

    def encode(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Runs the encoder (section 3.1).

        Args:
            inputs: int32 (batch, source), 0-padded.

        Returns:
            Its output, float (batch, source, d_model), and what may be seen of it,
            bool (batch, 1, source).
        """
        mask = padding_mask(inputs, self.source_end)
        x = self.input_dropout(self.encoder_input(inputs))
        return self.encoder(x, attention_mask=mask), mask

    def decode(self, targets: Tensor, encoder_output: Tensor, mask: Tensor) -> Tensor:
        """Runs the decoder over whole targets (section 3.1, teacher forcing).

        Args:
            targets: int32 (batch, target), 0-padded.
            encoder_output: float (batch, source, d_model).
            mask: bool (batch, 1, source), as `encode` returns it.

        Returns:
            float (batch, target, d_model).
        """
        x = self.target_dropout(self.decoder_input(targets))
        return self.decoder(x, encoder_output, cross_attention_mask=mask)

    def logits(self, decoder_output: Tensor) -> Tensor:
        """Multiplies float (..., d_model) by the softmax table: (..., V)."""
        return self.softmax_table(decoder_output, reverse=True)

    @property
    def softmax_table(self) -> TokenEmbedding:
        """What makes logits of the decoder's output; it may be the embedding."""
        return self.embedding if self.shared else self.softmax

    def encoder_input(self, inputs: Tensor, positions: Tensor | None = None) -> Tensor:
        """Embeds source symbols, adds the target-space vector and positions.

        Args:
            inputs: int32 (batch, source).
            positions: int32, (source,) or (batch, source); None: 0, 1, ...

        Returns:
            float (batch, source, d_model), before dropout.
        """
        if not self.built:
            self.build()
        x = (self.embedding if self.shared else self.input_embedding)(inputs)
        if self.target_space is not None:
            x = self.target_space(x)
        if self.input_position is not None:
            x = self.input_position(x, positions)
        return x

    def decoder_input(self, targets: Tensor, positions: Tensor | None = None) -> Tensor:
        """Embeds targets, shifted right by one place, and adds positions.

        # T2T: the shift is one of embeddings, by a vector of zeros
        (common_layers.py:shift_right_3d), so the first position sees the position
        signal alone; there is no start symbol. PAD embeds to zeros, so that shifting
        the symbols is the same.

        Args:
            targets: int32 (batch, target).
            positions: int32, (target,) or (batch, target); None: 0, 1, ...

        Returns:
            float (batch, target, d_model), before dropout.
        """
        return self.step_input(ops.pad(targets, ((0, 0), (1, 0)))[:, :-1], positions)

    def step_input(self, ids: Tensor, positions: Tensor | None) -> Tensor:
        """Embeds what decoder positions read, and adds positions.

        Args:
            ids: int32 (batch, length), each the symbol before; 0 before the first.
            positions: int32, (length,) or (batch, length); None: 0, 1, ...

        Returns:
            float (batch, length, d_model).
        """
        if not self.built:
            self.build()
        x = (self.target_embedding or self.softmax_table)(ids)
        return x if self.target_position is None else self.target_position(x, positions)
