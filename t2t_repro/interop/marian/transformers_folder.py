"""Reader of Marian models in Hugging Face Transformers' format (MarianMTModel)."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from t2t_repro.interop.embedding_tables import Tables
from t2t_repro.interop.formats.array_store import Arrays, ArrayStore, format_names
from t2t_repro.interop.formats.safetensors import read_safetensors
from t2t_repro.interop.formats.text import own_tables, read_json
from t2t_repro.interop.formats.torch_file import read_torch
from t2t_repro.interop.marian.model import MarianModel
from t2t_repro.interop.marian.search import transformers_search
from t2t_repro.interop.marian.transformers_vocabulary import (
    CONFIG,
    read_optional,
    read_vocabularies,
)
from t2t_repro.interop.vocabulary import PADDING, UNKNOWN
from t2t_repro.system.errors import UserError

_HEAD = "lm_head.weight"
_TABLES = own_tables(__file__)
_DEFAULTS: dict[str, Any] = _TABLES["defaults"]
ACTIVATIONS = {
    "relu": "relu",
    "silu": "swish",
    "swish": "swish",
    "gelu": "gelu",
    "quick_gelu": "gelu_sigmoid",
}
"""This package's name of each supported activation of Transformers."""


def read_transformers(folder: Path) -> MarianModel:
    """Reads and checks a model folder of Transformers.

    Args:
        folder: Folder of the configuration, weights and vocabularies.

    Returns:
        The model, whose layer weights are not read yet.

    Raises:
        UserError: A file is missing or damaged, the files belong to different models,
            or the model is not supported.
    """
    config_file = folder / CONFIG
    config = _config(config_file)
    store = _weights(folder)
    hparams = _hparams(config_file, config)
    tables, stray = _tables(store, config)
    vocabularies = read_vocabularies(folder, config, tables)
    positions = sorted(name for name in store.remaining if "embed_positions" in name)
    store.drop(positions)
    unused = {"positions, which are computed": positions} if positions else {}
    if stray:
        unused[f"softmax table, which {CONFIG} ties to {stray}"] = [_HEAD]
    settings = _search(folder / "generation_config.json", config)
    pieces = vocabularies.sides[1].pieces
    search, unused_search = transformers_search(
        folder, settings, pieces.index(PADDING), pieces.index(UNKNOWN)
    )
    tokenizer_config = read_optional(folder / "tokenizer_config.json")
    source_lang, target_lang = (
        lang if isinstance(lang, str) and lang else None
        for lang in map(tokenizer_config.get, ("source_lang", "target_lang"))
    )
    return MarianModel(
        program="Transformers",
        store=store,
        tables=tables,
        vocabularies=vocabularies,
        hparams=hparams,
        search=search,
        unused=unused | {"settings of the search": unused_search},
        languages=(source_lang, target_lang),
        every_array=not stray,
    )


def _search(path: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """Reads the generation settings and checks that they belong to the model."""
    generation = read_optional(path)
    for name in ("pad_token_id", "eos_token_id", "decoder_start_token_id"):
        if generation.get(name, config[name]) not in (config[name], [config[name]]):
            raise UserError(
                f"{path}: {name} is {generation[name]!r:.40}, but in {CONFIG} "
                f"{config[name]}; the files belong to different models"
            )
    excluded = _TABLES["other_generation_settings"]
    return {name: config[name] for name in _TABLES["search"] if name in config} | {
        name: value for name, value in generation.items() if name not in excluded
    }


def _config(path: Path) -> dict[str, Any]:
    """Returns config.json with defaults; raises UserError for unsupported values."""
    config = read_json(path)
    if "model_type" not in config:
        raise UserError(
            f"{path} lacks model_type; use the folder that save_pretrained wrote"
        )
    for name, needed in _TABLES["needed"].items():
        if config.get(name, needed) != needed:
            raise UserError(
                f"{path}: {name}: {config[name]!r:.40} is not supported; supported: "
                f"{needed!r}"
            )
    config = _DEFAULTS | config
    for name, default in _DEFAULTS.items():
        expected = int if default is None else type(default)
        value = config[name]
        is_number = type(value) is int and expected is float
        if value is not default and type(value) is not expected and not is_number:
            raise UserError(
                f"{path}: {name} must be of type {expected.__name__}, not {value!r:.40}"
            )
    if config["decoder_start_token_id"] != config["pad_token_id"]:
        raise UserError(
            f"{path}: decoder_start_token_id must be pad_token_id, "
            f"{config['pad_token_id']}, not {config['decoder_start_token_id']}"
        )
    return config


def _hparams(path: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """Translates config.json into hyper-parameters of the model."""
    heads = config["encoder_attention_heads"]
    if heads != config["decoder_attention_heads"]:
        raise UserError(
            f"{path}: encoder_attention_heads is {heads}, but decoder_attention_heads "
            f"is {config['decoder_attention_heads']}; only equal numbers are supported"
        )
    activation = config["activation_function"]
    if activation not in ACTIVATIONS:
        raise UserError(
            f"{path}: activation_function: {activation} is not supported; supported: "
            f"{', '.join(ACTIVATIONS)}"
        )
    return {
        "norm": "post",
        "activation": ACTIVATIONS[activation],
        "position": "sinusoid",
        **{ours: config[theirs] for ours, theirs in _TABLES["equal"].items()},
    }


def _weights(folder: Path) -> ArrayStore:
    """Reads the weights of the first of the known files in the folder.

    Each file may also be split into several, which an index lists.
    """
    for name, read in (
        ("model.safetensors", read_safetensors),
        ("pytorch_model.bin", read_torch),
    ):
        path, index = folder / name, folder / f"{name}.index.json"
        if path.is_file():
            return ArrayStore.from_arrays(path, read(path))
        if index.is_file():
            return ArrayStore.from_arrays(index, _read_parts(index, read))
    raise UserError(
        f"--folder {folder} contains {CONFIG}, but neither model.safetensors nor "
        "pytorch_model.bin, whole or in parts with an index.json; download one of "
        "them into the folder"
    )


def _read_parts(index: Path, read: Callable[[Path], Arrays]) -> Arrays:
    """Returns the arrays of all files that an index lists.

    Raises:
        UserError: The index or a file is damaged, or they contradict each other.
    """
    files = read_json(index).get("weight_map")
    if not (isinstance(files, dict) and files) or any(
        not (isinstance(name, str) and re.fullmatch(r"[\w.-]*\w", name))
        for name in files.values()
    ):
        raise UserError(
            f"{index}: weight_map must give the file of each array; download the index "
            "again"
        )
    arrays: Arrays = {}
    for name in sorted(set(files.values())):
        path = index.parent / name
        if not path.is_file():
            raise UserError(
                f"{path}: no such file, but {index.name} names it; download it into "
                "the folder"
            )
        part = read(path)
        listed = {key for key, file in files.items() if file == name}
        if wrong := sorted(listed ^ part.keys()):
            raise UserError(
                f"{index} and {name} list different arrays ({format_names(wrong)}); "
                "download both again"
            )
        arrays |= part
    return arrays


def _tables(store: ArrayStore, config: Mapping[str, Any]) -> tuple[Tables, str]:
    """Returns the embedding tables and the softmax bias.

    The file may contain tied tables under one or several names. Transformers ignores
    the softmax table if the configuration ties it to another one, as published files
    may contain an older table; the name of that other table is then returned, else "".
    """
    d_model = config["d_model"]
    shared, encoder, decoder = (
        "model.shared.weight",
        "model.encoder.embed_tokens.weight",
        "model.decoder.embed_tokens.weight",
    )
    head, stray = _HEAD, ""
    arrays = {
        name: store.take_optional(name, None, d_model)
        for name in (shared, encoder, decoder)
    }
    key = store.key(head)
    for name in (shared, decoder):
        table = arrays[name]
        if key and table is not None and config["tie_word_embeddings"]:
            if not np.array_equal(store.read(key).astype(np.float32), table):
                store.drop([key])
                stray = name
            break
    arrays[head] = None if stray else store.take_optional(head, None, d_model)
    if config["share_encoder_decoder_embeddings"]:
        groups = [[shared, encoder, decoder]]
    else:
        groups = [[encoder], [decoder]]
        # Older files store the encoder's table under the name of the shared one.
        if arrays[encoder] is None:
            groups[0].append(shared)
    if config["tie_word_embeddings"]:
        groups[-1].append(head)
    else:
        groups.append([head])
    tables: dict[str, np.ndarray] = {}
    for group in groups:
        copies = {name: t for name in group if (t := arrays[name]) is not None}
        if not copies:
            raise UserError(
                f"{store.file} lacks {group[0]}, which {CONFIG} requires; the files "
                "belong to different models"
            )
        first_name, first = next(iter(copies.items()))
        for name, other in copies.items():
            if not np.array_equal(first, other):
                raise UserError(
                    f"{store.file}: {first_name} and {name} differ, but {CONFIG} "
                    "declares them as tied; the files belong to different models"
                )
        tables.update(dict.fromkeys(group, first))
    bias = store.take("final_logits_bias", 1, len(tables[head]))[0]
    return Tables(tables[encoder], tables[decoder], tables[head], bias), stray
