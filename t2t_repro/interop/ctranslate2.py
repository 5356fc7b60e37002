"""A model as CTranslate2 reads it, for translating on CPUs with quantised weights.

CTranslate2 (github.com/OpenNMT/CTranslate2) runs the same Transformer without
TensorFlow. It takes and gives pieces of text, not text: the vocabulary's file is
written beside the weights, for the library that cuts a text into those pieces. Its
length penalty is another formula, so that scores and translations agree for
`length_penalty=0` and `alpha=0` only, with `min_decoding_length=0` (it is 1 unless told
otherwise). It may produce PAD, which never happens here; `suppress_sequences=
[["<pad>"]]`, the vocabulary's first piece, forbids it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import numpy.typing as npt

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
"""Longer sequences (subwords) are refused: their positions are a table there."""


def write_ctranslate2(
    model: Transformer,
    tokenizer: Tokenizer,
    output_dir: Path,
    quantization: str = "float32",
) -> None:
    """Writes a built model for `ctranslate2.Translator` into an empty folder.

    `quantization` of the weights is "float32", "int8", "int16" or "float16"; vectors
    stay float32 in int8. Without ctranslate2, or for a model it lacks: UserError.
    """
    spec = transformer_spec(model, tokenizer)
    spec.validate()
    spec.optimize(None if quantization == "float32" else quantization)
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save(folder)
        spec.register_file(str(Path(folder) / tokenizer.file_name))
        spec.save(str(output_dir))


def transformer_spec(model: Transformer, tokenizer: Tokenizer) -> TransformerSpec:
    """Describes a built model and its vocabulary in CTranslate2's terms.

    The specification is neither validated nor optimised. Raises as `write_ctranslate2`.
    """
    try:
        from ctranslate2.specs import TransformerSpec, common_spec
    except ImportError:
        raise UserError(
            "CTranslate2 is not installed; install it with pip install "
            "'t2t_repro[ctranslate2]'"
        ) from None
    _refuse_what_it_lacks(model)
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
    source, target = _vocabularies(model, tokenizer)
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    spec.config.layer_norm_epsilon = first.feed_forward_residual.layer_norm.epsilon
    spec.config.add_source_eos = model.source_end
    spec.config.eos_token = target[EOS_ID]
    # Where it is PAD it is read only for its place: the decoder starts from a vector of
    # zeros.
    start = target[_start_symbol(model)]
    spec.config.decoder_start_token = spec.config.bos_token = start
    # Every text can be spelled; what no vocabulary holds reads as padding.
    known = "<unk>" in source and "<unk>" in target
    spec.config.unk_token = "<unk>" if known else target[PAD_ID]
    return spec


def _start_symbol(model: Transformer) -> int:
    """Returns what the decoder reads before the first symbol."""
    table = model.target_embedding or model.softmax_table
    return int(table.start_symbol)


def _refuse_what_it_lacks(model: Transformer) -> None:
    """Raises UserError for what CTranslate2's Transformer cannot express."""
    layer = model.encoder.layer_0
    attention = layer.self_attention
    whole = model.d_model // attention.num_heads
    if far := getattr(attention, "max_relative_position", 0):
        raise UserError(
            f"max_relative_position={far}: CTranslate2 has no relative positions "
            "beside absolute ones; export a saved_model"
        )
    if radius := getattr(attention, "radius", 0):
        raise UserError(
            f"self_attention_radius={radius}: CTranslate2's self-attention sees all "
            "positions; export a saved_model"
        )
    if (activation := layer.feed_forward.activation) not in _ACTIVATIONS:
        raise UserError(
            f"activation={activation}: CTranslate2 has only "
            f"{', '.join(_ACTIVATIONS)}; export a saved_model"
        )
    d_k, d_v = attention.d_k, attention.d_v
    if {d_k, d_v} != {whole}:
        raise UserError(
            f"d_k={d_k} and d_v={d_v}: CTranslate2 needs both to be d_model / "
            f"num_heads = {whole}; export a saved_model"
        )


def _set_embeddings(
    spec: TransformerSpec, model: Transformer, values: Mapping[str, Array]
) -> None:
    """Fills the tables: symbols, softmax, positions.

    tensor2tensor's target-space vector is the same at every source position, so it
    goes into the table of positions.
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
    spec.decoder.start_from_zero_embedding = _start_symbol(model) == PAD_ID
    encodings = _positions(model.input_position, model.d_model)
    if model.target_space is not None:
        space = values["target_space/table"][model.target_space.target_space_id]
        encodings = encodings + space
    spec.encoder.position_encodings.encodings = encodings
    spec.decoder.position_encodings.encodings = _positions(
        model.target_position, model.d_model
    )


def _positions(position: keras.layers.Layer | None, d_model: int) -> Array:
    """Computes the signal of every position, float32 (MAX_POSITIONS, d_model)."""
    nothing = np.zeros((1, MAX_POSITIONS, d_model), np.float32)
    return nothing[0] if position is None else np.asarray(position(nothing))[0]


def _set_layer(layer: Any, name: str, values: Mapping[str, Array]) -> None:
    """Fills one layer of either stack.

    CTranslate2 keeps the projections of one input in one matrix: queries, keys and
    values of self-attention; keys and values of the other.
    """
    for attention, scope, groups in (
        ("self_attention", "self_attention", (("query", "key", "value"),)),
        ("attention", "cross_attention", (("query",), ("key", "value"))),
    ):
        if not hasattr(layer, attention):
            continue
        into = getattr(layer, attention)
        parts = (*groups, ("output",))
        for linear, kernels in zip(into.linear, parts, strict=True):
            kernel = [values[f"{name}/{scope}/{part}/kernel"].T for part in kernels]
            linear.weight = np.concatenate(kernel)
            names = [f"{name}/{scope}/{part}/bias" for part in kernels]
            if names[0] in values:
                linear.bias = np.concatenate([values[each] for each in names])
        _set_norm(into.layer_norm, f"{name}/{scope}_residual/layer_norm", values)
    for linear, part in (
        (layer.ffn.linear_0, "hidden"),
        (layer.ffn.linear_1, "output"),
    ):
        linear.weight = values[f"{name}/feed_forward/{part}/kernel"].T
        linear.bias = values[f"{name}/feed_forward/{part}/bias"]
    residual = f"{name}/feed_forward_residual/layer_norm"
    _set_norm(layer.ffn.layer_norm, residual, values)


def _set_norm(norm: Any, name: str, values: Mapping[str, Array]) -> None:
    """Fills one normalisation."""
    norm.gamma = values[f"{name}/scale"]
    norm.beta = values[f"{name}/bias"]


def _vocabularies(
    model: Transformer, tokenizer: Tokenizer
) -> tuple[list[str], list[str]]:
    """Names the rows of the tables, source then target; no name comes twice."""
    target = _table(tokenizer.target, model.vocab_size)
    if model.shared:
        return target, target
    return _table(tokenizer, model.input_embedding.vocab_size), target


def _table(tokenizer: Tokenizer, rows: int) -> list[str]:
    """Names the rows of a table, also those that only fill it up (`vocab_divisor`)."""
    names = tokenizer.pieces
    used = {name: number for number, name in enumerate(names)}
    names = [
        name if used[name] == number else f"<duplicate {number}>"
        for number, name in enumerate(names)
    ]
    return names + [f"<unused {number}>" for number in range(len(names), rows)]
