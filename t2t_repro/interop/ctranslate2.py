"""Export to CTranslate2, which translates on CPUs with quantized weights.

CTranslate2 (github.com/OpenNMT/CTranslate2) runs the same Transformer without
TensorFlow. Its inputs and outputs are pieces instead of text, so the export includes
the vocabulary file and `plain_tokenizer.py`, which reads it. Its length penalty has a
different formula: scores and translations agree only for `length_penalty=0` and
`alpha=0`, with `min_decoding_length=0` (default: 1). CTranslate2 can generate PAD,
which this package never does; `suppress_sequences=[["<pad>"]]`, with the vocabulary's
first piece, prevents it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import numpy.typing as npt

from t2t_repro.hparams.supported import Supported
from t2t_repro.models.transformer import Transformer
from t2t_repro.models.variables import named_variables
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.tokenizer import EOS_ID, PAD_ID, Tokenizer

if TYPE_CHECKING:
    from ctranslate2.specs import TransformerSpec

Array = npt.NDArray[np.float32]

_ACTIVATIONS = {
    "relu": "RELU",
    "swish": "SWISH",
    "silu": "SWISH",
    "gelu": "GELU",
    "gelu_sigmoid": "GELUSigmoid",
}
MAX_POSITIONS = 4096
"""Maximum sequence length in tokens, the size of CTranslate2's table of positions."""


def _head_width(values: Mapping[str, Any]) -> list[int]:
    return [values["d_model"] // values["num_heads"]]


SUPPORTED = Supported(
    "CTranslate2",
    "export a saved_model",
    (
        *("tokenizer", "vocab_size", "share_vocab", "vocab_divisor"),
        *("share_embeddings", "tie_target"),
        *("d_model", "d_ff", "decoder_d_ff", "num_layers", "num_decoder_layers"),
        *("num_heads", "attention_bias", "softmax_bias", "norm_epsilon"),
        *("position", "max_position", "start_symbol", "source_end"),
        *("scale_embeddings", "target_space_embedding", "target_space_id"),
        # CTranslate2 has its own search, whose settings the export does not contain.
        *("search", "beam_size", "alpha", "word_penalty", "allow_unknown"),
        *("decode_extra_length", "decode_length_factor"),
    ),
    {
        "activation": [*_ACTIVATIONS],
        "norm": ("post", "pre"),
        "d_k": _head_width,
        "d_v": _head_width,
    },
)
"""Hyper-parameters of CTranslate2's Transformer."""


def write_ctranslate2(
    model: Transformer,
    tokenizer: Tokenizer,
    output_dir: Path,
    quantization: str = "float32",
) -> None:
    """Writes a model for `ctranslate2.Translator`.

    Args:
        model: Built model.
        tokenizer: Tokenizer of the model.
        output_dir: Empty folder for the export.
        quantization: "float32", "int8", "int16" or "float16". With int8, biases and
            layer normalization stay float32.

    Raises:
        UserError: CTranslate2 is not installed or does not support the model.
    """
    spec = transformer_spec(model, tokenizer)
    spec.validate()
    spec.optimize(None if quantization == "float32" else quantization)
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_for_clients(folder)
        for path in Path(folder).iterdir():
            spec.register_file(str(path))
        spec.save(str(output_dir))


def transformer_spec(model: Transformer, tokenizer: Tokenizer) -> TransformerSpec:
    """Returns the specification of a model and its vocabulary for CTranslate2.

    Args:
        model: Built model.
        tokenizer: Tokenizer of the model.

    Returns:
        The specification, neither validated nor optimized.

    Raises:
        UserError: CTranslate2 is not installed or does not support the model.
    """
    try:
        from ctranslate2.specs import TransformerSpec, common_spec
    except ImportError:
        raise UserError(
            "CTranslate2 is not installed; run pip install 'ctranslate2>=4.8,<5'"
        ) from None
    SUPPORTED.check_model(model)
    first = model.encoder.layer_0
    pre_norm = model.encoder.norm == "pre"
    activation = _ACTIVATIONS[first.feed_forward.activation]
    spec = TransformerSpec.from_config(
        (model.encoder.num_layers, model.decoder.num_layers),
        first.self_attention.num_heads,
        pre_norm=pre_norm,
        activation=getattr(common_spec.Activation, activation),
    )
    values = {
        name: np.asarray(variable, np.float32)
        for name, variable in named_variables(model).items()
    }
    _set_embeddings(spec, model, values)
    for side, stack in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        for number, layer in enumerate(stack.layer):
            _set_layer(layer, f"{side}/layer_{number}", values)
        if pre_norm:
            _set_norm(stack.layer_norm, f"{side}/final_norm", values)
    source = target = _table(tokenizer.target, model.vocab_size)
    if not model.shared:
        source = _table(tokenizer, model.input_embedding.vocab_size)
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    spec.config.layer_norm_epsilon = first.feed_forward_residual.layer_norm.epsilon
    spec.config.add_source_eos = model.source_end
    spec.config.eos_token = target[EOS_ID]
    # CTranslate2 requires a start token even if the first input is a zero vector. It
    # then ignores the embedding of this token, PAD.
    start_symbol = int((model.target_embedding or model.softmax_table).start_symbol)
    spec.decoder.start_from_zero_embedding = start_symbol == PAD_ID
    start = target[start_symbol]
    spec.config.decoder_start_token = spec.config.bos_token = start
    # Vocabularies without <unk> can encode any text, so the unknown token is never
    # used.
    has_unknown = "<unk>" in source and "<unk>" in target
    spec.config.unk_token = "<unk>" if has_unknown else target[PAD_ID]
    return spec


def _set_embeddings(
    spec: TransformerSpec, model: Transformer, values: Mapping[str, Array]
) -> None:
    """Sets the embeddings, the softmax weights and the position encodings.

    The target-space vector is added to the position encodings, because it is the same
    at every source position.
    """
    if model.shared:
        source = target = softmax = values["embedding/table"]
        scaled = model.embedding.scale
    else:
        source = values["input_embedding/table"]
        softmax = values["softmax/table"]
        target = values.get("target_embedding/table", softmax)
        scaled = model.input_embedding.scale
    spec.encoder.embeddings[0].weight = source
    spec.decoder.embeddings.weight = target
    spec.decoder.projection.weight = softmax
    bias = "embedding/bias" if model.shared else "softmax/bias"
    if bias in values:
        spec.decoder.projection.bias = values[bias]
    spec.encoder.scale_embeddings = spec.decoder.scale_embeddings = scaled
    encodings = _positions(model.input_position, model.d_model)
    if model.target_space is not None:
        space = values["target_space/table"][model.target_space.target_space_id]
        encodings = encodings + space
    spec.encoder.position_encodings.encodings = encodings
    spec.decoder.position_encodings.encodings = _positions(
        model.target_position, model.d_model
    )


def _positions(position: keras.layers.Layer | None, d_model: int) -> Array:
    """Returns the position encodings: float32 (MAX_POSITIONS, d_model)."""
    zeros = np.zeros((1, MAX_POSITIONS, d_model), np.float32)
    return zeros[0] if position is None else np.asarray(position(zeros))[0]


def _set_layer(layer: Any, name: str, values: Mapping[str, Array]) -> None:
    """Sets the weights of an encoder or decoder layer.

    CTranslate2 concatenates the projections that have the same input: queries, keys
    and values of self-attention, and keys and values of cross-attention.
    """
    for attention, scope, groups in (
        ("self_attention", "self_attention", (("query", "key", "value"),)),
        ("attention", "cross_attention", (("query",), ("key", "value"))),
    ):
        if hasattr(layer, attention):
            attention_spec = getattr(layer, attention)
            linears = zip(attention_spec.linear, (*groups, ("output",)), strict=True)
            for linear, parts in linears:
                _set_linear(linear, f"{name}/{scope}", parts, values)
            residual = f"{name}/{scope}_residual/layer_norm"
            _set_norm(attention_spec.layer_norm, residual, values)
    feed_forward = f"{name}/feed_forward"
    _set_linear(layer.ffn.linear_0, feed_forward, ("hidden",), values)
    _set_linear(layer.ffn.linear_1, feed_forward, ("output",), values)
    _set_norm(layer.ffn.layer_norm, f"{feed_forward}_residual/layer_norm", values)


def _set_linear(
    linear: Any, name: str, parts: Sequence[str], values: Mapping[str, Array]
) -> None:
    """Sets the weights of a linear layer to the concatenation of some projections."""
    kernels = [values[f"{name}/{part}/kernel"].T for part in parts]
    linear.weight = np.concatenate(kernels)
    if f"{name}/{parts[0]}/bias" in values:
        linear.bias = np.concatenate([values[f"{name}/{part}/bias"] for part in parts])


def _set_norm(norm: Any, name: str, values: Mapping[str, Array]) -> None:
    """Sets the scale and bias of a layer normalization."""
    norm.gamma = values[f"{name}/scale"]
    norm.beta = values[f"{name}/bias"]


def _table(tokenizer: Tokenizer, rows: int) -> list[str]:
    """Returns a unique name for each of the `rows` rows of an embedding table.

    The rows that `vocab_divisor` adds are included.
    """
    names = tokenizer.pieces
    last = {name: number for number, name in enumerate(names)}
    names = [
        name if last[name] == number else f"<duplicate {number}>"
        for number, name in enumerate(names)
    ]
    return names + [f"<unused {number}>" for number in range(len(names), rows)]
