"""A Marian model as a folder of Hugging Face Transformers (MarianMTModel)."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from t2t_repro.interop.formats.safetensors import read_safetensors
from t2t_repro.interop.formats.torch_file import read_torch
from t2t_repro.interop.marian.model import (
    PADDING,
    Arrays,
    MarianModel,
    Vocabulary,
    Weights,
    read_piece_model,
    vocabulary,
)
from t2t_repro.system.errors import UserError

CONFIG = "config.json"
# What a config.json leaves out (transformers configuration_marian.py).
_DEFAULTS = {
    "d_model": 1024,
    "encoder_layers": 12,
    "decoder_layers": 12,
    "encoder_attention_heads": 16,
    "decoder_attention_heads": 16,
    "encoder_ffn_dim": 4096,
    "decoder_ffn_dim": 4096,
    "activation_function": "gelu",
    "scale_embedding": False,
    "vocab_size": 58101,
    "decoder_vocab_size": None,
    "pad_token_id": 58100,
    "eos_token_id": 0,
    "share_encoder_decoder_embeddings": True,
    "tie_word_embeddings": True,
    "dropout": 0.1,
    "attention_dropout": 0.0,
    "activation_dropout": 0.0,
    "decoder_start_token_id": 58100,
}
_ACTIVATIONS = {"relu": "relu", "swish": "swish", "silu": "swish", "gelu": "gelu"}
# What these have to be, where they are given.
_NEEDED = {
    "model_type": "marian",
    "normalize_before": False,
    "normalize_embedding": False,
    "add_final_layer_norm": False,
    "add_bias_logits": False,
    "static_position_embeddings": True,
    "is_encoder_decoder": True,
}
# What config.json may say of the search; generation_config.json says nothing else.
_SEARCH = (
    *("num_beams", "length_penalty", "max_length", "max_new_tokens"),
    *("early_stopping", "bad_words_ids", "renormalize_logits"),
)
_MOST_DIGITS = 15
_NO_SEARCH = (
    *("pad_token_id", "eos_token_id", "bos_token_id", "decoder_start_token_id"),
    *("forced_eos_token_id", "transformers_version", "_from_model_config", "use_cache"),
)
_PARTS = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}


def read_transformers(folder: Path) -> MarianModel:
    """Reads and checks a folder of Transformers'.

    UserError: something is missing, damaged, of another model, or of a kind that is
    not supported here.
    """
    config_file = folder / CONFIG
    config = _config(config_file)
    weights = _weights(folder)
    hparams = _hparams(config_file, config)
    variables = _variables(weights, hparams)
    tables = _tables(weights, config)
    rows = len(tables["softmax"])
    bias = weights.take("final_logits_bias", 1, rows)[0]
    source, target = _vocabularies(folder, config_file, config, tables)
    positions = [name for name in weights.left if "embed_positions" in name]
    for name in positions:
        weights.left.pop(name)
    weights.refuse_left()
    search = _search(folder / "generation_config.json", config)
    texts = _json(folder / "tokenizer_config.json", optional=True)
    source_lang, target_lang = (
        lang if isinstance(lang, str) and lang else None
        for lang in (texts.get("source_lang"), texts.get("target_lang"))
    )
    return MarianModel(
        program="Transformers",
        weights_file=weights.file,
        weights=variables,
        tables=tables,
        softmax_bias=bias,
        hparams=hparams,
        search=search,
        source=source,
        target=target,
        source_model=read_piece_model(folder / "source.spm"),
        target_model=read_piece_model(folder / "target.spm"),
        languages=(source_lang, target_lang),
        used=weights.used,
        unused={"positions, which are computed": positions} if positions else {},
    )


def _search(path: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """Reads the settings of the search, which must be of the same model."""
    generation = _json(path, optional=True)
    for name in ("pad_token_id", "eos_token_id", "decoder_start_token_id"):
        if generation.get(name, config[name]) not in (config[name], [config[name]]):
            raise UserError(
                f"{path}: {name} is {generation[name]!r:.40}, but in {CONFIG} "
                f"{config[name]}; the files are of different models"
            )
    found = {name: config[name] for name in _SEARCH if name in config}
    others = {k: v for k, v in generation.items() if k not in _NO_SEARCH}
    return found | others


def _json(path: Path, optional: bool = False) -> dict[str, Any]:
    """Reads one JSON object; where it may be missing, an empty one stands for it."""
    if optional and not path.is_file():
        return {}
    try:
        text = path.read_text(encoding="utf-8")
        found = json.loads(text, object_pairs_hook=_once, parse_int=_integer)
        if not isinstance(found, dict):
            raise ValueError("it must hold one object")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is damaged: {error}") from None
    return found


def _integer(text: str) -> int:
    """Reads an integer that a float holds."""
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"a number of {len(text):,} digits")
    return int(text)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Makes a dictionary of names that do not come twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name comes twice")
    return found


def _config(path: Path) -> dict[str, Any]:
    """Reads the settings, and names what is not supported here."""
    config = _json(path)
    if "model_type" not in config:
        raise UserError(f"{path} does not say its model_type")
    for name, needed in _NEEDED.items():
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


def _weights(folder: Path) -> Weights:
    """Reads the file of weights that is there, the safer one first."""
    for name, read in (
        ("model.safetensors", read_safetensors),
        ("pytorch_model.bin", read_torch),
    ):
        path = folder / name
        if path.is_file():
            return Weights(path, read(path))
        if (folder / f"{name}.index.json").is_file():
            raise UserError(
                f"{path}.index.json: weights in several files are not read; save them "
                'as one (save_pretrained(FOLDER, max_shard_size="20GB"))'
            )
    raise UserError(
        f"--folder {folder} has {CONFIG} but neither model.safetensors nor "
        "pytorch_model.bin; get the weights, too"
    )


def _variables(weights: Weights, hparams: Mapping[str, Any]) -> Arrays:
    """Takes the layers' arrays, under our names; matrices are turned."""
    d_model = hparams["d_model"]
    found: Arrays = {}

    def norm(ours: str, theirs: str) -> None:
        for kind, name in (("scale", "weight"), ("bias", "bias")):
            found[f"{ours}/{kind}"] = weights.take(f"{theirs}.{name}", d_model)

    def linear(ours: str, theirs: str, rows: int, columns: int) -> None:
        found[f"{ours}/kernel"] = weights.take(f"{theirs}.weight", columns, rows).T
        found[f"{ours}/bias"] = weights.take(f"{theirs}.bias", columns)

    for side, depth, width in (
        ("encoder", hparams["num_layers"], hparams["d_ff"]),
        ("decoder", hparams["num_decoder_layers"], hparams["decoder_d_ff"]),
    ):
        for number in range(depth):
            ours = f"{side}/layer_{number}"
            theirs = f"model.{side}.layers.{number}"
            attentions = [("self_attention", "self_attn")]
            if side == "decoder":
                attentions.append(("cross_attention", "encoder_attn"))
            for attention, name in attentions:
                for part, short in _PARTS.items():
                    linear(
                        f"{ours}/{attention}/{part}",
                        f"{theirs}.{name}.{short}",
                        d_model,
                        d_model,
                    )
                residual = f"{ours}/{attention}_residual/layer_norm"
                norm(residual, f"{theirs}.{name}_layer_norm")
            network = f"{ours}/feed_forward"
            linear(f"{network}/hidden", f"{theirs}.fc1", d_model, width)
            linear(f"{network}/output", f"{theirs}.fc2", width, d_model)
            norm(f"{network}_residual/layer_norm", f"{theirs}.final_layer_norm")
    return found


def _tables(weights: Weights, config: Mapping[str, Any]) -> Arrays:
    """Takes the tables; of those that are tied, one name is enough."""
    d_model = config["d_model"]
    given = {
        name: weights.take_if_there(name, None, d_model)
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
    tables: Arrays = {}
    for group in groups:
        there = {n: t for n in group if (t := given[n]) is not None}
        if not there:
            raise UserError(
                f"{weights.file} has no {group[0]}, which {CONFIG} says it has; they "
                "are of different models"
            )
        one, first = next(iter(there.items()))
        for name, other in there.items():
            if not np.array_equal(first, other):
                raise UserError(
                    f"{weights.file}: {one} and {name} differ, though {CONFIG} "
                    "says that they are one; they are of different models"
                )
        tables.update(dict.fromkeys(group, first))
    target = tables[decoder]
    softmax = tables[head]
    if len(target) != len(softmax):
        raise UserError(
            f"{weights.file}: {len(target):,} rows of {decoder}, but {len(softmax):,} "
            f"of {head}"
        )
    return {"input": tables[encoder], "target": target, "softmax": softmax}


def _vocabularies(
    folder: Path,
    config_file: Path,
    config: Mapping[str, Any],
    tables: Mapping[str, np.ndarray],
) -> tuple[Vocabulary, Vocabulary | None]:
    """Reads one vocabulary, or two where a `target_vocab.json` is there."""
    sizes = {"vocab_size": config["vocab_size"]}
    sizes["decoder_vocab_size"] = config["decoder_vocab_size"] or config["vocab_size"]
    for (name, size), side in zip(sizes.items(), ("input", "target"), strict=True):
        if size != len(tables[side]):
            raise UserError(
                f"{config_file}: {name} is {size:,}, but the table has "
                f"{len(tables[side]):,} rows; the files are of different models"
            )
    files = [folder / "vocab.json", folder / "target_vocab.json"]
    source = _vocabulary(files[0], tables["input"], config_file, config)
    if files[1].is_file():
        return source, _vocabulary(files[1], tables["target"], config_file, config)
    if len(tables["target"]) != len(tables["input"]):
        raise UserError(
            f"--folder {folder} has one vocabulary, but the model has tables of "
            f"{len(tables['input']):,} and {len(tables['target']):,} rows; "
            "target_vocab.json is missing"
        )
    return source, None


def _vocabulary(
    path: Path, table: np.ndarray, config_file: Path, config: Mapping[str, Any]
) -> Vocabulary:
    """Reads one vocabulary, and checks it with the numbers of its special pieces."""
    found = vocabulary(path, _json(path), len(table))
    for name, piece in (("eos_token_id", "</s>"), ("pad_token_id", PADDING)):
        number = config[name]
        if not 0 <= number < len(found.pieces) or found.pieces[number] != piece:
            raise UserError(
                f"{config_file}: {name} is {number}, which in {path.name} is not "
                f"{piece}; the files are of different models"
            )
    if np.any(table[config["pad_token_id"]]):
        raise UserError(
            f"--folder {path.parent}: the row of {PADDING} is not zero, so that its "
            "start symbol is another than Marian's; this is not supported here"
        )
    return found
