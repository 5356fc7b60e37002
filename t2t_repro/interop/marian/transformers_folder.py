"""A Marian model as a folder of Hugging Face Transformers (MarianMTModel)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from t2t_repro.interop.embedding_tables import Tables
from t2t_repro.interop.formats.array_store import ArrayStore
from t2t_repro.interop.formats.safetensors import read_safetensors
from t2t_repro.interop.formats.text import own_tables, read_json
from t2t_repro.interop.formats.torch_file import read_torch
from t2t_repro.interop.marian.model import MarianModel
from t2t_repro.interop.marian.search import transformers_search
from t2t_repro.interop.vocabulary import (
    PADDING,
    Vocabularies,
    Vocabulary,
    ordered_vocabulary,
)
from t2t_repro.system.errors import UserError

CONFIG = "config.json"
_TABLES = own_tables(__file__)
_DEFAULTS: dict[str, Any] = _TABLES["defaults"]
_ACTIVATIONS = {"relu": "relu", "swish": "swish", "silu": "swish", "gelu": "gelu"}


def read_transformers(folder: Path) -> MarianModel:
    """Reads and checks a folder of Transformers'.

    UserError: something is missing, damaged, of another model, or of a kind that is
    not supported here.
    """
    config_file = folder / CONFIG
    config = _config(config_file)
    store = _weights(folder)
    hparams = _hparams(config_file, config)
    tables = _tables(store, config)
    vocabularies = _vocabularies(folder, config, tables)
    positions = sorted(name for name in store.remaining if "embed_positions" in name)
    store.drop(positions)
    unused = {"positions, which are computed": positions} if positions else {}
    settings = _search(folder / "generation_config.json", config)
    padding = vocabularies.sides[1].pieces.index(PADDING)
    search, search_left = transformers_search(folder, settings, padding)
    texts = _optional(folder / "tokenizer_config.json")
    source_lang, target_lang = (
        lang if isinstance(lang, str) and lang else None
        for lang in (texts.get("source_lang"), texts.get("target_lang"))
    )
    return MarianModel(
        program="Transformers",
        store=store,
        tables=tables,
        vocabularies=vocabularies,
        hparams=hparams,
        search=search,
        unused=unused | {"settings of the search": search_left},
        languages=(source_lang, target_lang),
    )


def _search(path: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """Reads the settings of the search, which must be of the same model."""
    generation = _optional(path)
    for name in ("pad_token_id", "eos_token_id", "decoder_start_token_id"):
        if generation.get(name, config[name]) not in (config[name], [config[name]]):
            raise UserError(
                f"{path}: {name} is {generation[name]!r:.40}, but in {CONFIG} "
                f"{config[name]}; the files are of different models"
            )
    others = _TABLES["not_of_the_search"]
    return {name: config[name] for name in _TABLES["search"] if name in config} | {
        name: value for name, value in generation.items() if name not in others
    }


def _optional(path: Path) -> dict[str, Any]:
    """Reads a JSON file; an empty object stands for a missing one."""
    return read_json(path) if path.is_file() else {}


def _config(path: Path) -> dict[str, Any]:
    """Reads the settings, and names what is not supported here."""
    config = read_json(path)
    if "model_type" not in config:
        raise UserError(f"{path} does not say its model_type")
    for name, needed in _TABLES["needed"].items():
        if config.get(name, needed) != needed:
            raise UserError(
                f"{path}: {name}: {config[name]!r:.40} is not supported here; only "
                f"{needed!r}"
            )
    config = _DEFAULTS | config
    for name, default in _DEFAULTS.items():
        wanted = int if default is None else type(default)
        value = config[name]
        number = type(value) is int and wanted is float
        if value is not default and type(value) is not wanted and not number:
            raise UserError(
                f"{path}: {name} must be of type {wanted.__name__}, not {value!r:.40}"
            )
    if config["decoder_start_token_id"] != config["pad_token_id"]:
        raise UserError(
            f"{path}: decoder_start_token_id must be pad_token_id, "
            f"{config['pad_token_id']}, not {config['decoder_start_token_id']}"
        )
    return config


def _hparams(path: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """Translates the settings into hyper-parameters of the model."""
    heads = config["encoder_attention_heads"]
    if heads != config["decoder_attention_heads"]:
        raise UserError(
            f"{path}: {heads} heads in the encoder and "
            f"{config['decoder_attention_heads']} in the decoder are not supported "
            "here; only as many"
        )
    activation = config["activation_function"]
    if activation not in _ACTIVATIONS:
        raise UserError(
            f"{path}: activation_function: {activation} is not supported here; there "
            f"are {', '.join(_ACTIVATIONS)}"
        )
    return {
        "d_model": config["d_model"],
        "d_ff": config["encoder_ffn_dim"],
        "decoder_d_ff": config["decoder_ffn_dim"],
        "num_heads": heads,
        "num_layers": config["encoder_layers"],
        "num_decoder_layers": config["decoder_layers"],
        "norm": "post",
        "activation": _ACTIVATIONS[activation],
        "position": "sinusoid",
        "scale_embeddings": config["scale_embedding"],
        "dropout": float(config["dropout"]),
        "attention_dropout": float(config["attention_dropout"]),
        "ffn_dropout": float(config["activation_dropout"]),
    }


def _weights(folder: Path) -> ArrayStore:
    """Reads the file of weights that is there, the safer one first."""
    for name, read in (
        ("model.safetensors", read_safetensors),
        ("pytorch_model.bin", read_torch),
    ):
        path = folder / name
        if path.is_file():
            return ArrayStore.of_arrays(path, read(path))
        if (folder / f"{name}.index.json").is_file():
            raise UserError(
                f"{path}.index.json: weights in several files are not read; save them "
                'as one (save_pretrained(FOLDER, max_shard_size="20GB"))'
            )
    raise UserError(
        f"--folder {folder} has {CONFIG} but neither model.safetensors nor "
        "pytorch_model.bin; get the weights, too"
    )


def _tables(store: ArrayStore, config: Mapping[str, Any]) -> Tables:
    """Takes the tables and the softmax's bias; tied tables need one name only."""
    d_model = config["d_model"]
    given = {
        name: store.take_optional(name, None, d_model)
        for name in (
            "model.shared.weight",
            "model.encoder.embed_tokens.weight",
            "model.decoder.embed_tokens.weight",
            "lm_head.weight",
        )
    }
    shared, encoder, decoder, head = given
    if config["share_encoder_decoder_embeddings"]:
        groups = [[shared, encoder, decoder]]
    else:
        groups = [[encoder], [decoder]]
        # The class has no such table then; older files keep one.
        if given[encoder] is None:
            groups[0].append(shared)
    if config["tie_word_embeddings"]:
        groups[-1].append(head)
    else:
        groups.append([head])
    tables: dict[str, np.ndarray] = {}
    for group in groups:
        there = {n: t for n in group if (t := given[n]) is not None}
        if not there:
            raise UserError(
                f"{store.file} has no {group[0]}, which {CONFIG} says it has; they "
                "are of different models"
            )
        one, first = next(iter(there.items()))
        for name, other in there.items():
            if not np.array_equal(first, other):
                raise UserError(
                    f"{store.file}: {one} and {name} differ, though {CONFIG} "
                    "says that they are one; they are of different models"
                )
        tables.update(dict.fromkeys(group, first))
    target = tables[decoder]
    softmax = tables[head]
    if len(target) != len(softmax):
        raise UserError(
            f"{store.file}: {len(target):,} rows of {decoder}, but {len(softmax):,} "
            f"of {head}"
        )
    bias = store.take("final_logits_bias", 1, len(softmax))[0]
    return Tables(tables[encoder], target, softmax, bias)


def _vocabularies(
    folder: Path, config: Mapping[str, Any], tables: Tables
) -> Vocabularies:
    """Reads one vocabulary, or two where a `target_vocab.json` is there."""
    size = config["vocab_size"]
    for name, rows, given in (
        ("vocab_size", len(tables.source), size),
        ("decoder_vocab_size", len(tables.target), config["decoder_vocab_size"]),
    ):
        if (given or size) != rows:
            raise UserError(
                f"{folder / CONFIG}: {name} is {given or size:,}, but the table has "
                f"{rows:,} rows; the files are of different models"
            )
    files = [folder / "vocab.json", folder / "target_vocab.json"]
    source = _vocabulary(files[0], tables.source, config)
    if files[1].is_file():
        target = _vocabulary(files[1], tables.target, config)
        return Vocabularies(source, target)
    if len(tables.target) != len(tables.source):
        raise UserError(
            f"--folder {folder} has one vocabulary, but the model has tables of "
            f"{len(tables.source):,} and {len(tables.target):,} rows; "
            "target_vocab.json is missing"
        )
    return Vocabularies(source, None)


def _vocabulary(path: Path, table: np.ndarray, config: Mapping[str, Any]) -> Vocabulary:
    """Reads one vocabulary, and checks it with the numbers of its special pieces."""
    found = ordered_vocabulary(path, read_json(path), len(table))
    for name, piece in (("eos_token_id", "</s>"), ("pad_token_id", PADDING)):
        number = config[name]
        if not 0 <= number < len(found.pieces) or found.pieces[number] != piece:
            raise UserError(
                f"{path.with_name(CONFIG)}: {name} is {number}, which in {path.name} "
                f"is not {piece}; the files are of different models"
            )
    if np.any(table[config["pad_token_id"]]):
        raise UserError(
            f"--folder {path.parent}: the row of {PADDING} is not zero, so that its "
            "start symbol is another than Marian's; this is not supported here"
        )
    return found
