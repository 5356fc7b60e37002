"""The Transformer (paper section 3, figure 1)."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Self

import keras
from keras import ops

from t2t_repro import hparams as hparam_sets
from t2t_repro.hparams import HParams
from t2t_repro.layers.dropout import Dropout
from t2t_repro.layers.embedding import TargetSpace, TokenEmbedding
from t2t_repro.layers.functional import Tensor
from t2t_repro.layers.layer import argument_names, dtype_config, select_arguments
from t2t_repro.layers.masks import combine_masks, padding_mask, segment_mask
from t2t_repro.layers.position import LearnedPosition, PositionalEncoding
from t2t_repro.layers.stacks import Decoder, Encoder, EncoderLayer
from t2t_repro.system.gradients import release_gradients


@keras.saving.register_keras_serializable("t2t_repro")
class Transformer(keras.Model):
    """Encoder-decoder Transformer with one shared or two separate vocabularies.

    The defaults are those of the paper's base model.

    Args:
        vocab_size: Number of rows of the embedding table, including PAD (0) and EOS
            (1).
        target_vocab_size: Number of rows of the target side's table; defaults to
            `vocab_size`.
        d_model: Number of channels of each position.
        num_layers: Number of encoder layers, N.
        num_decoder_layers: Number of decoder layers; defaults to `num_layers`.
        num_heads: Number of attention heads, h.
        d_k: Number of channels per head of the queries and keys; defaults to
            d_model / h.
        d_v: Number of channels per head of the values; defaults to d_model / h.
        d_ff: Number of hidden channels of the feed-forward networks.
        dropout: P_drop, the dropout rate of sub-layer outputs and of both stacks'
            inputs.
        norm: "post" (paper) or "pre".
        position: Formula of `layers.PositionalEncoding`, "learned" or "none".
        max_position: Number of rows of a learned position table.
        share_embeddings: Whether inputs, targets and logits share one table. This
            requires equal numbers of rows; otherwise, the tables are separate.
        scale_embeddings: Whether to multiply embeddings by sqrt(d_model).
        target_space_embedding: Whether to add a trained vector to all source positions.
        target_space_id: Row of the table of these vectors.
        tie_target: Whether targets and logits share a table if the inputs have
            their own.
        source_end: Whether the EOS of the source is visible to the model.
        decoder_d_ff: d_ff of the decoder; defaults to `d_ff`.
        softmax_bias: Whether to add a bias to the logits.
        start_symbol: Id of the token before the targets; 0: a vector of zeros.
        **options: Further arguments of `layers.EncoderLayer`, by name.

    Call arguments:
        inputs: ``{"inputs": ..., "targets": ...}``, int32 (batch, source) and
            (batch, target), each row ending in EOS and 0-padded. For rows that hold
            several pairs, the dictionary also contains ``inputs_segmentation``,
            ``inputs_position`` and the same for the targets; see
            `packing.packed_features`.
        training: Whether to apply dropout; Keras passes it on to the layers.
        project: Whether to compute logits from the decoder's output.

    Returns:
        float (batch, target, V): logits of each target token given the previous ones;
        without `project` the decoder's output, float (batch, target, d_model).

    Raises:
        ValueError: A size is less than 1, or d_model is not a multiple of the number of
            heads, or the inputs of a call are not such a dictionary.

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
        arguments = select_arguments(Transformer, locals())
        for size in ("vocab_size", "d_model", "num_layers", "num_heads", "d_ff"):
            if arguments[size] < 1:
                raise ValueError(f"{size}={arguments[size]} must be at least 1")
        if d_model % num_heads and not (d_k and d_v):
            raise ValueError(
                f"d_model={d_model} is not a multiple of num_heads={num_heads}; change "
                "one of them or set d_k and d_v"
            )
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
        space = TargetSpace(target_space_id, name="target_space", dtype=policy)
        self.target_space = space if target_space_embedding else None
        self.input_position = self.target_position = None
        if position != "none":
            encoding = partial(PositionalEncoding, position, dtype=policy)
            if position == "learned":
                encoding = partial(LearnedPosition, max_position, dtype=policy)
            self.input_position = encoding(name="input_position")
            self.target_position = encoding(name="target_position")
        self.input_dropout = Dropout(dropout, name="input_dropout", dtype=policy)
        self.target_dropout = Dropout(dropout, name="target_dropout", dtype=policy)
        depth = d_model // num_heads
        options |= {"num_heads": num_heads, "d_k": d_k or depth, "d_v": d_v or depth}
        options |= {"dropout": dropout, "dtype": policy}
        self.encoder = Encoder(num_layers, norm, d_ff=d_ff, name="encoder", **options)
        layers, d_ff = num_decoder_layers or num_layers, decoder_d_ff or d_ff
        self.decoder = Decoder(layers, norm, d_ff=d_ff, name="decoder", **options)
        self.arguments = self.decoder.arguments | arguments

    @classmethod
    def from_hparams(
        cls,
        hparams: str | HParams,
        vocab_size: int,
        target_vocab_size: int | None = None,
        **changes: Any,
    ) -> Self:
        """Creates the model of a hyper-parameter set.

        Args:
            hparams: Hyper-parameters, or the name of a set: "base", "big,dropout=0.2".
            vocab_size: Size of the vocabulary, including PAD (0) and EOS (1). The
                number of table rows is rounded up to a multiple of ``vocab_divisor``.
            target_vocab_size: Size of the target vocabulary; defaults to `vocab_size`.
            **changes: Arguments of the model that differ from the set.

        Raises:
            UserError: The set does not exist or is invalid.
        """
        if isinstance(hparams, str):
            hparams = hparam_sets.load(hparams)
        names = argument_names(Transformer)[2:] + argument_names(EncoderLayer)
        arguments = {name: getattr(hparams, name) for name in names} | changes
        target_rows = hparams.table_rows(target_vocab_size or vocab_size)
        return cls(hparams.table_rows(vocab_size), target_rows, **arguments)

    def build(self, input_shape: object = None) -> None:
        """Creates all variables without running the model."""
        ids, shape = (None, None), (None, None, self.d_model)
        softmax = None if self.shared else self.softmax
        for layer in self.layers:
            if isinstance(layer, TokenEmbedding) and layer is not softmax:
                layer.build(ids)
            elif layer is not self.decoder:
                layer.build(shape)
        self.decoder.build(shape, shape)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor arguments."""
        config = super().get_config() | self.arguments
        return config | {"dtype": dtype_config(self)}

    def call(self, inputs: dict[str, Tensor], project: bool = True) -> Tensor:
        """Computes the logits of every target position; see the class."""
        if not isinstance(inputs, Mapping) or not {"inputs", "targets"} <= {*inputs}:
            raise ValueError(
                'the inputs of a Transformer are a dictionary {"inputs": ..., '
                f'"targets": ...}}, not {_describe(inputs)}'
            )
        source = inputs.get("inputs_position"), inputs.get("inputs_segmentation")
        target = inputs.get("targets_position"), inputs.get("targets_segmentation")
        encoder_output, mask = self.encode(inputs["inputs"], *source)
        mask = combine_masks(segment_mask(target[1], source[1]), mask)
        x = self.decode(inputs["targets"], encoder_output, mask, *target)
        return self.logits(x) if project else x

    def train_step(self, *args: Any, **kwargs: Any) -> Any:
        """Runs a step of `fit`; TensorFlow's all-reduce has a custom gradient."""
        with release_gradients():
            return super().train_step(*args, **kwargs)

    def compute_loss(
        self, x: Any = None, y: Any = None, *args: Any, **kwargs: Any
    ) -> Tensor:
        """Computes the loss, with the targets as labels if the dataset lacks labels."""
        y = x["targets"] if y is None else y
        return super().compute_loss(x, y, *args, **kwargs)

    def encode(
        self,
        inputs: Tensor,
        positions: Tensor | None = None,
        segments: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Runs the encoder (section 3.1).

        Args:
            inputs: int32 (batch, source), 0-padded.
            positions: int32 (batch, source); defaults to 0, 1, ...
            segments: int32 (batch, source), see `segment_mask`; None: one per row.

        Returns:
            The encoder's output, float (batch, source, d_model), and the mask of the
            source, bool (batch, 1, source), true at visible positions.
        """
        mask = padding_mask(inputs, self.source_end)
        x = self.input_dropout(self.encoder_input(inputs, positions))
        visible = combine_masks(segment_mask(segments, segments), mask)
        return self.encoder(x, attention_mask=visible), mask

    def decode(
        self,
        targets: Tensor,
        encoder_output: Tensor,
        mask: Tensor,
        positions: Tensor | None = None,
        segments: Tensor | None = None,
    ) -> Tensor:
        """Runs the decoder over whole targets, with teacher forcing (section 3.1).

        Args:
            targets: int32 (batch, target), 0-padded.
            encoder_output: float (batch, source, d_model), from `encode`.
            mask: bool, true at visible source positions, broadcastable to (batch,
                target, source); from `encode`.
            positions: int32 (batch, target); defaults to 0, 1, ...
            segments: int32 (batch, target), see `segment_mask`; None: one per row.

        Returns:
            float (batch, target, d_model).
        """
        x = self.target_dropout(self.decoder_input(targets, positions))
        return self.decoder(x, encoder_output, segment_mask(segments, segments), mask)

    def logits(self, decoder_output: Tensor) -> Tensor:
        """Projects float (..., d_model) to logits (..., V)."""
        return self.softmax_table(decoder_output, reverse=True)

    @property
    def softmax_table(self) -> TokenEmbedding:
        """The table that computes the logits; the shared embedding if there is one."""
        return self.embedding if self.shared else self.softmax

    def encoder_input(self, inputs: Tensor, positions: Tensor | None = None) -> Tensor:
        """Embeds source tokens and adds the target-space vector and the positions.

        Args:
            inputs: int32 (batch, source).
            positions: int32, (source,) or (batch, source); defaults to 0, 1, ...

        Returns:
            float (batch, source, d_model), before dropout.
        """
        if not self.built:
            self.build()
        x = (self.embedding if self.shared else self.input_embedding)(inputs)
        if self.target_space is not None:
            x = self.target_space(x)
        return x if self.input_position is None else self.input_position(x, positions)

    def decoder_input(self, targets: Tensor, positions: Tensor | None = None) -> Tensor:
        """Embeds the targets, shifted right by one position, and adds the positions.

        # T2T: common_layers.py:shift_right_3d inserts a vector of zeros, not a start
        token, so the first decoder input is only the position signal. Shifting the ids
        instead of the embeddings is equivalent, because PAD embeds to zeros. In a row
        of several segments, the shift restarts in each segment, so that packed and
        separate pairs have equal logits; tensor2tensor's first decoder input of a later
        segment is the EOS of the segment before it.

        Args:
            targets: int32 (batch, target).
            positions: int32, (target,) or (batch, target); defaults to 0, 1, ...

        Returns:
            float (batch, target, d_model), before dropout.
        """
        ids = ops.pad(targets, ((0, 0), (1, 0)))[:, :-1]
        if positions is not None:
            ids = ops.where(positions == 0, 0, ids)
        return self.step_input(ids, positions)

    def step_input(self, ids: Tensor, positions: Tensor | None) -> Tensor:
        """Embeds decoder inputs, which are already shifted, and adds the positions.

        Args:
            ids: int32 (batch, length), the token before each position; 0 at the start.
            positions: int32, (length,) or (batch, length); None: 0, 1, ...

        Returns:
            float (batch, length, d_model), before dropout.
        """
        if not self.built:
            self.build()
        x = (self.target_embedding or self.softmax_table)(ids)
        return x if self.target_position is None else self.target_position(x, positions)


def _describe(inputs: object) -> str:
    if isinstance(inputs, Mapping):
        return f"a dictionary with the keys {', '.join(map(str, inputs)) or 'none'}"
    return type(inputs).__name__
