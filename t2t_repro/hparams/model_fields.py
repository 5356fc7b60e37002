"""Hyper-parameters of the corpus and the model."""

from __future__ import annotations

import dataclasses
import functools

from t2t_repro.hparams.settings import setting

_PAPER_BATCH = "paper section 5.1"
_PAPER_BASE = "paper table 3, base"
_OWN = "own choice"

_model_setting = functools.partial(setting, changes="function")
_size = functools.partial(_model_setting, minimum=1)


@dataclasses.dataclass(frozen=True)
class ModelFields:
    """Fields of `HParams` that determine the corpus and the function of the model."""

    problem: str | None = setting(
        "translate_ende_wmt14",
        "Name of the training corpus; null: unknown.",
        _PAPER_BATCH,
    )
    data_dir: str | None = setting(
        None,
        "Folder of the data, or several with weights: general:1,domain:3; null: that "
        "of --data_dir, which overrides this.",
        _OWN,
        changes="nothing",
    )
    tokenizer: str = _model_setting(
        "sentencepiece",
        "Tokenizer: SentencePiece byte-pair encoding, lossless word pieces, or the "
        "vocabulary of an imported Marian model.",
        _PAPER_BATCH,
        choices=("sentencepiece", "wordpiece", "marian"),
    )
    vocab_size: int = _model_setting(
        37_000,
        "Number of subwords in a vocabulary; of each one if share_vocab is false.",
        _PAPER_BATCH,
        minimum=3,
    )
    share_vocab: bool = _model_setting(
        True,
        "Build one vocabulary from the texts of both sides; false: one for each side. "
        "Imported models keep theirs.",
        _PAPER_BATCH,
    )
    normalization: str = setting(
        "exact",
        "SentencePiece's normalization rule of a vocabulary that is built from text. "
        "exact: texts are restored exactly; the others replace similar characters.",
        "own choice; SentencePiece --normalization_rule_name",
        choices=("exact", "nfkc", "nmt_nfkc", "nfkc_cf", "nmt_nfkc_cf"),
    )
    character_coverage: float = setting(
        0.9999,
        "Fraction of the characters in a text that get a SentencePiece piece; the "
        "rarest others are spelled as bytes.",
        "own choice; SentencePiece --character_coverage",
        minimum=0.98,
        maximum=1,
    )
    split_digits: bool = setting(
        False,
        "Make each digit a SentencePiece piece of its own.",
        "SentencePiece --split_digits",
    )
    whole_symbols: str | None = setting(
        None,
        "Symbols, separated by spaces, that SentencePiece never splits; null: none.",
        "SentencePiece --user_defined_symbols",
    )

    d_model: int = _size(
        512, "Model width: size of the vector of each position.", _PAPER_BASE
    )
    d_ff: int = _size(2048, "Width of the inner feed-forward layer.", _PAPER_BASE)
    num_heads: int = _size(8, "Number of attention heads.", _PAPER_BASE)
    d_k: int | None = _size(
        None,
        "Width of the queries and keys of a head; null: d_model / num_heads.",
        _PAPER_BASE,
    )
    d_v: int | None = _size(
        None, "Width of the values of a head; null: d_model / num_heads.", _PAPER_BASE
    )
    num_layers: int = _size(6, "Number of encoder layers.", _PAPER_BASE)
    num_decoder_layers: int | None = _size(
        None, "Number of decoder layers; null: num_layers.", _PAPER_BASE
    )
    decoder_d_ff: int | None = _size(
        None,
        "Width of the inner feed-forward layer of the decoder; null: d_ff.",
        "Marian --transformer-decoder-dim-ffn",
    )
    activation: str = _model_setting(
        "relu",
        "Activation of the feed-forward layers; gelu_sigmoid: x sigmoid(1.702 x).",
        "paper equation 2; Marian --transformer-ffn-activation",
        choices=("relu", "swish", "gelu", "gelu_sigmoid"),
    )
    attention_bias: bool = _model_setting(
        False, "Add a bias in all attention projections.", "Marian layers"
    )
    norm: str = _model_setting(
        "post",
        "Position of layer norm. post: after each residual sum; pre: before each "
        "sub-layer.",
        "paper section 3.1; pre: tensor2tensor transformer_base_v2",
        choices=("post", "pre"),
    )
    norm_epsilon: float = _model_setting(
        1e-6,
        "Constant added to the variance in layer norm.",
        "tensor2tensor common_layers.py:layer_norm; Marian 1e-9, Transformers 1e-5",
    )
    max_relative_position: int = _model_setting(
        0,
        "Distance at which relative positions in self-attention are clipped; 0: no "
        "relative positions.",
        "Shaw et al. 2018, arXiv:1803.02155; tensor2tensor transformer_relative",
    )
    self_attention_radius: int = _model_setting(
        0,
        "Positions on either side that self-attention can see (r = 2 radius + 1); 0: "
        "all.",
        "paper section 4 and table 1, restricted self-attention",
    )
    position: str = _model_setting(
        "sinusoid",
        "Position encoding. sinusoid: as in tensor2tensor and Marian; sinusoid_paper: "
        "formula of the paper; sinusoid_halves: that formula with all sines first, as "
        "in Transformers; sinusoid_from_one: positions counted from 1, as in "
        "OpenNMT-tf; learned: trained table.",
        "tensor2tensor common_attention.py:get_timing_signal_1d; opennmt "
        "layers/position.py; paper section 3.5; transformers "
        "modeling_marian.py:MarianSinusoidalPositionalEmbedding",
        choices=(
            *("sinusoid", "sinusoid_paper", "sinusoid_halves", "sinusoid_from_one"),
            *("learned", "none"),
        ),
    )
    max_position: int = _size(512, "Number of learned position vectors.", _OWN)
    share_embeddings: bool = _model_setting(
        True,
        "Share one matrix for both embeddings and the softmax.",
        "paper section 3.4",
    )
    tie_target: bool = _model_setting(
        False,
        "Share one matrix for target embedding and softmax, if share_embeddings is "
        "false.",
        "Marian --tied-embeddings",
    )
    softmax_bias: bool = _model_setting(
        False,
        "Add a bias to the logits and mask the padding id.",
        "Marian decoder_ff_logit_out_b",
    )
    start_symbol: int = _model_setting(
        0,
        "Id of the first decoder input; 0: a vector of zeros.",
        "tensor2tensor common_layers.py:shift_right_3d; OpenNMT-tf <s>",
    )
    source_end: bool = _model_setting(
        True,
        "Include the EOS token in the encoder input.",
        "tensor2tensor; OpenNMT-tf source_sequence_controls",
    )
    scale_embeddings: bool = _model_setting(
        True, "Multiply embeddings by sqrt(d_model).", "paper section 3.4"
    )
    vocab_divisor: int = _size(
        1,
        "Divisor of the number of rows in the embedding tables, which is rounded up.",
        "tensor2tensor basic_params1",
    )
    target_space_embedding: bool = _model_setting(
        True,
        "Add a trained vector, row target_space_id of a table, to the encoder input.",
        "tensor2tensor transformer_layers.py:transformer_prepare_encoder",
    )
    target_space_id: int = _model_setting(
        0,
        "tensor2tensor's id of the target language, for target_space_embedding.",
        "tensor2tensor problem.py:SpaceID",
        below=32,
    )

    @property
    def key_size(self) -> int:
        """Width d_k of the queries and keys of a head."""
        return self.d_model // self.num_heads if self.d_k is None else self.d_k

    @property
    def value_size(self) -> int:
        """Width d_v of the values of a head."""
        return self.d_model // self.num_heads if self.d_v is None else self.d_v

    def table_rows(self, vocab_size: int) -> int:
        """Returns the number of embedding rows: a multiple of `vocab_divisor`."""
        return -(-vocab_size // self.vocab_divisor) * self.vocab_divisor

    @property
    def decoder_layers(self) -> int:
        """Number of decoder layers."""
        return self.num_decoder_layers or self.num_layers
