"""Export to Marian's format, the inverse of `folder`."""

from pathlib import Path
from typing import Any

import numpy as np
import yaml

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.hparams import HParams
from t2t_repro.hparams.supported import Supported
from t2t_repro.interop.embedding_tables import Tables
from t2t_repro.interop.formats.array_store import Arrays
from t2t_repro.interop.formats.text import own_tables
from t2t_repro.interop.marian.options import NORMS, OPTIONS
from t2t_repro.interop.marian.writing import (
    EVERY_VALUE,
    REMEDY,
    REQUIRED,
    check_tokenizer,
    order_rows,
    read_arrays,
)
from t2t_repro.interop.stack_weights import name_stacks
from t2t_repro.interop.vocabulary import name_pieces
from t2t_repro.models.transformer import Transformer
from t2t_repro.tokenizers.marian_tokenizer import MarianTokenizer
from t2t_repro.tokenizers.tokenizer import Tokenizer

_OPTIONS = own_tables(__file__)
# The version of Marian selects the form of GELU when a model is imported.
_VERSIONS = {"gelu_sigmoid": "v1.12.0"}
_MAX_LENGTH_FACTOR = 3  # Marian's default.

SUPPORTED = Supported(
    "the Marian export",
    f"{REMEDY}, or import the model with --positions marian",
    (*EVERY_VALUE, "word_penalty"),
    {
        "activation": ("relu", "swish", "gelu", "gelu_sigmoid"),
        "norm": ("post", "pre"),
        "position": ("sinusoid", "none"),
    },
    REQUIRED | {"norm_epsilon": (1e-9,)},
)
"""Hyper-parameters of Marian's Transformer."""


def write_marian(
    model: Transformer,
    tokenizer: Tokenizer,
    hparams: HParams,
    search: DecodingConfig,
    folder: Path,
) -> None:
    """Writes a folder for marian-decoder: weights, vocabularies and decoder.yml.

    The search is that of Marian. Its limit of outputs is a multiple of the input's
    length; it is Marian's default if `search` has another limit.

    Args:
        model: Built model.
        tokenizer: Tokenizer of the model.
        hparams: Supported hyper-parameters.
        search: Settings of the search.
        folder: Empty folder for the export.

    Raises:
        UserError: Marian does not support the vocabulary.
    """
    checked = check_tokenizer(tokenizer, SUPPORTED.export)
    vocabularies, rows = _write_vocabularies(checked, folder)
    weights = read_arrays(model)
    arrays = name_stacks(weights, "Marian", hparams.norm)
    arrays |= _embeddings(Tables.from_variables(weights), rows)
    options = _options(hparams, [len(ids) for ids in rows])
    arrays[OPTIONS] = np.frombuffer(yaml.safe_dump(options).encode() + b"\0", np.int8)
    np.savez(folder / "model.npz", allow_pickle=False, **arrays)
    settings = {
        "relative-paths": True,
        "models": ["model.npz"],
        "vocabs": vocabularies,
        "beam-size": search.beam_size,
        "normalize": float(search.alpha),
        "word-penalty": float(search.word_penalty),
        "max-length-factor": float(search.length_factor or _MAX_LENGTH_FACTOR),
        "allow-unk": hparams.allow_unknown,
    }
    text = yaml.safe_dump(settings, sort_keys=False)
    (folder / "decoder.yml").write_text(text, encoding="utf-8")


def _write_vocabularies(
    tokenizer: MarianTokenizer, folder: Path
) -> tuple[list[str], list[list[int]]]:
    """Writes the vocabularies and the SentencePiece models.

    Returns:
        For source and target, the name of the vocabulary file and this package's id of
        each of its pieces.
    """
    sides = {"source": tokenizer, "target": tokenizer.target}
    shared = tokenizer.target_vocab_size is None
    names, rows = [], []
    for side, each in sides.items():
        model, prefix = each.piece_model, "" if shared else f"{side}."
        if model is not None and not tokenizer.has_labels:
            # SentencePiece numbers the pieces of Marian's own vocabularies.
            name = f"{prefix}vocab.spm"
            (folder / name).write_bytes(model)
            order = [each.pieces.index(piece) for piece in name_pieces(model, name)]
        else:
            name, order = f"{prefix}vocab.yml", order_rows(each)
            ids = {each.pieces[row]: number for number, row in enumerate(order)}
            text = yaml.safe_dump(ids, allow_unicode=True, sort_keys=False)
            (folder / name).write_text(text, encoding="utf-8")
            if model is not None:
                (folder / f"{side}.spm").write_bytes(model)
        names.append(name)
        rows.append(order)
    return names, rows


def _embeddings(tables: Tables, rows: list[list[int]]) -> Arrays:
    """Returns the tables and the softmax bias, without padding."""
    source, target = rows
    tying = tables.tying()
    arrays = {"decoder_ff_logit_out_b": tables.bias[target][np.newaxis]}
    if tying["share_embeddings"]:
        return arrays | {"Wemb": tables.source[source]}
    arrays["encoder_Wemb"] = tables.source[source]
    arrays["decoder_Wemb"] = tables.target[target]
    if not tying["tie_target"]:
        arrays["decoder_ff_logit_out_Wt"] = tables.softmax[target]
    return arrays


def _options(hparams: HParams, sizes: list[int]) -> dict[str, Any]:
    """Returns Marian's options of the model."""
    places = next(key for key, norm in NORMS.items() if norm == hparams.norm)
    preprocess, postprocess, top = places
    exact = hparams.activation.removesuffix("_sigmoid")
    return _OPTIONS | {
        "dim-emb": hparams.d_model,
        "dim-vocabs": sizes,
        "enc-depth": hparams.num_layers,
        "dec-depth": hparams.decoder_layers,
        "transformer-heads": hparams.num_heads,
        "transformer-dim-ffn": hparams.d_ff,
        "transformer-decoder-dim-ffn": hparams.decoder_d_ff or 0,
        "transformer-ffn-activation": exact,
        "transformer-preprocess": preprocess,
        "transformer-postprocess": f"d{postprocess}",
        "transformer-postprocess-top": top,
        "transformer-disable-position-embeddings": hparams.position == "none",
        "tied-embeddings": hparams.tie_target and not hparams.share_embeddings,
        "tied-embeddings-all": hparams.share_embeddings,
        "version": _VERSIONS.get(hparams.activation, "v1.12.42"),
    }
