"""Reader of Marian models in Hugging Face Transformers' format (MarianMTModel)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from t2t_repro.interop.embedding_tables import Tables
from t2t_repro.interop.formats.array_store import ArrayStore, some
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
_HEAD = "lm_head.weight"
_TABLES = own_tables(__file__)
_DEFAULTS: dict[str, Any] = _TABLES["defaults"]
_ACTIVATIONS = {"relu": "relu", "swish": "swish", "silu": "swish", "gelu": "gelu"}


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
    vocabularies = _vocabularies(folder, config, tables)
    positions = sorted(name for name in store.remaining if "embed_positions" in name)
    store.drop(positions)
    unused = {"positions, which are computed": positions} if positions else {}
    if stray:
        unused[f"softmax table, which {CONFIG} ties to {stray}"] = [_HEAD]
    settings = _search(folder / "generation_config.json", config)
    padding = vocabularies.sides[1].pieces.index(PADDING)
    search, unused_search = transformers_search(folder, settings, padding)
    tokenizer_config = _read_optional(folder / "tokenizer_config.json")
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
    generation = _read_optional(path)
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


def _read_optional(path: Path) -> dict[str, Any]:
    """Returns the object in a JSON file, empty if the file does not exist."""
    return read_json(path) if path.is_file() else {}


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
    if activation not in _ACTIVATIONS:
        raise UserError(
            f"{path}: activation_function: {activation} is not supported; supported: "
            f"{', '.join(_ACTIVATIONS)}"
        )
    return {
        "norm": "post",
        "activation": _ACTIVATIONS[activation],
        "position": "sinusoid",
        **{ours: config[theirs] for ours, theirs in _TABLES["equal"].items()},
    }


def _weights(folder: Path) -> ArrayStore:
    """Reads model.safetensors, or pytorch_model.bin if it is missing."""
    for name, read in (
        ("model.safetensors", read_safetensors),
        ("pytorch_model.bin", read_torch),
    ):
        path = folder / name
        if path.is_file():
            return ArrayStore.of_arrays(path, read(path))
        if (folder / f"{name}.index.json").is_file():
            raise UserError(
                f"{path}.index.json: weights in several files are not supported; save "
                'them in one file (save_pretrained(FOLDER, max_shard_size="20GB"))'
            )
    raise UserError(
        f"--folder {folder} contains {CONFIG}, but neither model.safetensors nor "
        "pytorch_model.bin; download one of them into the folder"
    )


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


def _vocabularies(
    folder: Path, config: Mapping[str, Any], tables: Tables
) -> Vocabularies:
    """Reads `vocab.json` and, if it exists, `target_vocab.json`."""
    size = config["vocab_size"]
    for name, rows, value in (
        ("vocab_size", len(tables.source), size),
        ("decoder_vocab_size", len(tables.target), config["decoder_vocab_size"]),
    ):
        if (value or size) != rows:
            raise UserError(
                f"{folder / CONFIG}: {name} is {value or size:,}, but the embedding "
                f"table has {rows:,} rows; the files belong to different models"
            )
    source = _vocabulary(folder / "vocab.json", tables.source, config)
    added_file = folder / "added_tokens.json"
    if added := sorted(_read_optional(added_file).keys() - {*source.pieces}):
        raise UserError(
            f"{added_file}: added tokens are not supported ({some(added)}); use the "
            "model without them"
        )
    path = folder / "target_vocab.json"
    target = _vocabulary(path, tables.target, config) if path.is_file() else None
    return Vocabularies(source, target)


def _vocabulary(path: Path, table: np.ndarray, config: Mapping[str, Any]) -> Vocabulary:
    """Reads a vocabulary and checks the ids of its special pieces."""
    vocabulary = ordered_vocabulary(path, read_json(path))
    for name, piece in (("eos_token_id", "</s>"), ("pad_token_id", PADDING)):
        number, pieces = config[name], vocabulary.pieces
        if not 0 <= number < len(pieces) or pieces[number] != piece:
            raise UserError(
                f"{path.with_name(CONFIG)}: {name} is {number}, which in {path.name} "
                f"is not {piece}; the files belong to different models"
            )
    padding = config["pad_token_id"]
    if np.any(table[padding : padding + 1]):
        raise UserError(
            f"--folder {path.parent}: the embedding of {PADDING} must be zero, because "
            "Marian's decoder starts from zeros; other models are not supported"
        )
    return vocabulary
