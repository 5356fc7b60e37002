"""The hyper-parameters of the corpus and of the model's function."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

from t2t_repro.hparams.settings import setting

_PAPER_BATCH = "paper section 5.1"
_PAPER_BASE = "paper table 3, base"
_OWN = "own choice"

_model_setting = functools.partial(setting, changes="function")


@dataclasses.dataclass(frozen=True)
class ModelFields:
    """What decides what a model computes; the first part of `HParams`."""

    problem: str = setting(
        "translate_ende_wmt14", "The corpus to learn from.", _PAPER_BATCH
    )
    tokenizer: str = _model_setting(
        "sentencepiece",
        "Kind of subwords: byte-pair pieces, lossless word pieces, or Marian's own.",
        _PAPER_BATCH,
        choices=("sentencepiece", "wordpiece", "marian"),
    )
    vocab_size: int = _model_setting(
        37_000,
        "Subwords in the vocabulary that source and target share.",
        _PAPER_BATCH,
        minimum=3,
    )

    d_model: int = _model_setting(
        512, "Width of every position's vector.", _PAPER_BASE, minimum=1
    )
    d_ff: int = _model_setting(
        2048, "Width of the feed-forward inner layer.", _PAPER_BASE, minimum=1
    )
    num_heads: int = _model_setting(8, "Attention heads.", _PAPER_BASE, minimum=1)
    d_k: int | None = _model_setting(
        None,
        "Width of one head's query and key; null: d_model / num_heads.",
        _PAPER_BASE,
        minimum=1,
    )
    d_v: int | None = _model_setting(
        None,
        "Width of one head's value; null: d_model / num_heads.",
        _PAPER_BASE,
        minimum=1,
    )
    num_layers: int = _model_setting(
        6, "Layers of the encoder.", _PAPER_BASE, minimum=1
    )
    num_decoder_layers: int | None = _model_setting(
        None, "Layers of the decoder; null: as the encoder.", _PAPER_BASE, minimum=1
    )
    decoder_d_ff: int | None = _model_setting(
        None,
        "Width of the decoder's feed-forward inner layer; null: d_ff.",
        "Marian --transformer-decoder-dim-ffn",
        minimum=1,
    )
    activation: str = _model_setting(
        "relu",
        "Between the feed-forward network's two maps; gelu_sigmoid: x sigmoid(1.702x).",
        "paper equation 2; Marian --transformer-ffn-activation",
        choices=("relu", "swish", "gelu", "gelu_sigmoid"),
    )
    attention_bias: bool = _model_setting(
        False, "Add biases in the projections of every attention.", "Marian layers"
    )
    norm: str = _model_setting(
        "post",
        "Layer norm after each sub-layer's residual sum, or before the sub-layer.",
        "paper section 3.1; pre: tensor2tensor transformer_base_v2",
        choices=("post", "pre"),
    )
    norm_epsilon: float = _model_setting(
        1e-6,
        "Added to the variance by layer norm.",
        "tensor2tensor common_layers.py:layer_norm; Marian 1e-9, Transformers 1e-5",
        minimum=0,
    )
    max_relative_position: int = _model_setting(
        0,
        "Distance beyond which relative positions in self-attention are one; 0: none.",
        "Shaw et al. 2018, arXiv:1803.02155; tensor2tensor transformer_relative",
        minimum=0,
    )
    self_attention_radius: int = _model_setting(
        0,
        "Positions that self-attention sees on either side (r = 2 radius + 1); 0: all.",
        "paper section 4 and table 1, restricted self-attention",
        minimum=0,
    )
    position: str = _model_setting(
        "sinusoid",
        "Position signal: tensor2tensor's sinusoid (Marian's, too), the same counted "
        "from 1 (OpenNMT-tf), the paper's formula, that formula with all sines first "
        "(Transformers), learned.",
        "tensor2tensor common_attention.py:get_timing_signal_1d; opennmt "
        "layers/position.py; paper section 3.5; transformers "
        "modeling_marian.py:MarianSinusoidalPositionalEmbedding",
        choices=(
            *("sinusoid", "sinusoid_paper", "sinusoid_halves", "sinusoid_from_one"),
            *("learned", "none"),
        ),
    )
    max_position: int = _model_setting(
        512, "Rows of the table of learned positions.", _OWN, minimum=1
    )
    share_embeddings: bool = _model_setting(
        True, "One matrix for both embeddings and the softmax.", "paper section 3.4"
    )
    tie_target: bool = _model_setting(
        False,
        "Where embeddings are not shared: one matrix for target and softmax.",
        "Marian --tied-embeddings",
    )
    softmax_bias: bool = _model_setting(
        False,
        "Add a bias of each subword to the logits, and rule padding out.",
        "Marian decoder_ff_logit_out_b",
    )
    start_symbol: int = _model_setting(
        0,
        "What the decoder reads before the first subword: an id; 0: a vector of zeros.",
        "tensor2tensor common_layers.py:shift_right_3d; OpenNMT-tf <s>",
        minimum=0,
    )
    source_end: bool = _model_setting(
        True,
        "Whether the encoder sees the end mark of the source.",
        "tensor2tensor; OpenNMT-tf source_sequence_controls",
    )
    scale_embeddings: bool = _model_setting(
        True, "Multiply embeddings by sqrt(d_model).", "paper section 3.4"
    )
    vocab_divisor: int = _model_setting(
        1,
        "Rows of the embedding tables are rounded up to a multiple of this.",
        "tensor2tensor basic_params1",
        minimum=1,
    )
    target_space_embedding: bool = _model_setting(
        True,
        "Add one row of a trained table of 32 rows to the encoder's input.",
        "tensor2tensor transformer_layers.py:transformer_prepare_encoder",
    )
    target_space_id: int = _model_setting(
        0,
        "The row of that table: tensor2tensor's number of the target's language.",
        "tensor2tensor problem.py:SpaceID",
        minimum=0,
        below=32,
    )

    @property
    def key_size(self) -> int:
        """The width d_k of one head's query and key."""
        return self.d_model // self.num_heads if self.d_k is None else self.d_k

    @property
    def value_size(self) -> int:
        """The width d_v of one head's value."""
        return self.d_model // self.num_heads if self.d_v is None else self.d_v

    @property
    def self_attention(self) -> dict[str, Any] | None:
        """A serialized layer in place of the paper's self-attention, or None."""
        config = {"radius": self.self_attention_radius}
        if self.max_relative_position:
            config["max_relative_position"] = self.max_relative_position
            return {"class_name": "t2t_repro>RelativeAttention", "config": config}
        if self.self_attention_radius:
            return {"class_name": "t2t_repro>LocalAttention", "config": config}
        return None

    def table_rows(self, vocab_size: int) -> int:
        """Returns the rows of an embedding table: a multiple of `vocab_divisor`."""
        return -(-vocab_size // self.vocab_divisor) * self.vocab_divisor

    @property
    def decoder_layers(self) -> int:
        """The number of layers in the decoder."""
        return self.num_decoder_layers or self.num_layers
