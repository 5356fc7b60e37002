"""Translation of tensor2tensor's hyper-parameters into this package's.

Unsupported values that affect the model or its training are rejected.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from t2t_repro.hparams import HParams
from t2t_repro.interop.formats.text import own_tables
from t2t_repro.interop.formats.text import read_json as read_object
from t2t_repro.interop.tensor2tensor.sets import BASE
from t2t_repro.system.errors import UserError

_TABLES = own_tables(__file__)

# Default of t2t-trainer's --train_steps.
_TRAIN_STEPS = 250_000

# Every hparams.json of a Transformer contains these keys.
_REQUIRED = ("hidden_size", "filter_size", "num_heads", "num_hidden_layers")

_NORMS = {("none", "dan"): "post", ("", "dan"): "post", ("n", "da"): "pre"}
_POSITIONS = {"timing": "sinusoid", "emb": "learned", "none": "none", None: "none"}

# Values that disable an unknown hyper-parameter.
_OFF: tuple[Any, ...] = (None, False, 0, "", "none", {}, [])


def read_json(path: Path) -> dict[str, Any]:
    """Reads the hparams.json that t2t-trainer wrote.

    Raises:
        UserError: The file is missing, damaged or not that of a Transformer.
    """
    values = read_object(path)
    missing = [key for key in _REQUIRED if key not in values]
    if missing:
        raise UserError(
            f"{path} lacks {', '.join(missing)}; give the hparams.json of a "
            "tensor2tensor Transformer"
        )
    return values


def parse_t2t_overrides(text: str) -> dict[str, Any]:
    """Parses `key=value,key=value` like tensor2tensor's flag `--hparams`.

    Args:
        text: Assignments. Values are numbers, booleans or text, which may contain
            commas: `relu_dropout_broadcast_dims=0,1`.

    Returns:
        The values by key.

    Raises:
        UserError: The text has another form, or repeats a key.
    """
    values: dict[str, Any] = {}
    for part in filter(str.strip, re.split(r",(?=[^,=]*=|\s*$)", text)):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key:
            raise UserError(
                f"--t2t_hparams: {part.strip()!r} is not of the form key=value"
            )
        if key in values:
            raise UserError(f"--t2t_hparams: {key} is given twice")
        values[key] = _parse_value(value)
    return values


def translate_hparams(
    t2t: Mapping[str, Any], vocab_size: int, target_space_id: int = 0
) -> HParams:
    """Translates tensor2tensor's hyper-parameters into this package's.

    The search settings are those of `t2t-decoder`, but translations may have only 50
    more tokens than their sources, as in the paper.
    The batch size is that of one GPU.

    Args:
        t2t: tensor2tensor's values by name; defaults are those of its oldest version.
        vocab_size: Number of subwords, without padding to `vocab_divisor`.
        target_space_id: Id of the target language (problem.py:SpaceID), which
            tensor2tensor's problem defines.

    Raises:
        UserError: Some values are not supported; the message lists them.
    """
    values = {**BASE, **t2t}
    _reject_unsupported(t2t, values)
    heads, layers = values["num_heads"], values["num_hidden_layers"]
    key_channels = values["attention_key_channels"]
    value_channels = values["attention_value_channels"]
    relative = values["self_attention_type"] == "dot_product_relative"
    positions = {"max_position": values["max_length"]} if values["pos"] == "emb" else {}
    return HParams(
        problem=None,
        tokenizer="wordpiece",
        vocab_size=vocab_size,
        d_k=key_channels // heads if key_channels else None,
        d_v=value_channels // heads if value_channels else None,
        num_layers=values["num_encoder_layers"] or layers,
        num_decoder_layers=values["num_decoder_layers"] or layers,
        norm=_NORMS[_sequences(values)],
        max_relative_position=values["max_relative_position"] if relative else 0,
        position=_POSITIONS[values["pos"]],
        **positions,
        share_embeddings=bool(values["shared_embedding_and_softmax_weights"]),
        scale_embeddings=values["multiply_embedding_mode"] == "sqrt_depth",
        target_space_embedding=bool(values["use_target_space_embedding"]),
        target_space_id=target_space_id,
        **(_learning_rate(values) or {}),
        clip_norm=values["clip_grad_norm"] or 0.0,
        # data_reader.py replaces 0 with the batch size.
        max_length=values["max_length"] or values["batch_size"],
        train_steps=t2t.get("train_steps") or _TRAIN_STEPS,
        beam_size=4,
        alpha=0.6,
        decode_extra_length=50,
        **{ours: values[theirs] for ours, theirs in _TABLES["equal"].items()},
    )


def find_ignored(t2t: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the hyper-parameters that are neither translated nor checked.

    `translate_hparams` accepts them only if they are known to be harmless, or disabled.
    """
    known = BASE.keys() | _TABLES["model"].keys() | _TABLES["training"].keys()
    return {key: t2t[key] for key in sorted(t2t.keys() - known)}


def _reject_unsupported(t2t: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Raises UserError that lists all unsupported values."""
    wrong = [key for key, default in BASE.items() if not _is_like(t2t, key, default)]
    if wrong:
        raise UserError(
            f"tensor2tensor's {_format(values, wrong)}: wrong type; correct the file "
            "or --t2t_hparams"
        )
    if values["hidden_size"] < 1:
        raise UserError(
            f"tensor2tensor's hidden_size={values['hidden_size']}: must be at least 1"
        )
    training = _find_unsupported(t2t, "training")
    if _learning_rate(values) is None:
        training += ["learning_rate_schedule", "learning_rate_decay_scheme"]
    harmless, prefixes = _TABLES["harmless"], tuple(_TABLES["harmless_prefixes"])
    unknown = [
        key
        for key, value in find_ignored(t2t).items()
        if not (key in harmless or key.startswith(prefixes) or value in _OFF)
    ]
    parts = [
        (
            _find_unsupported(t2t, "model") + _find_untranslatable(values),
            "change the model in an unsupported way",
        ),
        (
            training,
            "change only the training: to train with other settings or not at all, "
            "replace them, as in --t2t_hparams "
            "optimizer=adam,learning_rate_schedule=legacy",
        ),
        (
            unknown,
            "are unknown: if they do not change the model, disable them with "
            "--t2t_hparams KEY=none",
        ),
    ]
    if problems := [f"{_format(values, keys)} {text}" for keys, text in parts if keys]:
        raise UserError(
            "tensor2tensor's hyper-parameters cannot be imported: "
            + "; ".join(problems)
        )


def _format(values: Mapping[str, Any], keys: Iterable[str]) -> str:
    return ", ".join(f"{key}={json.dumps(values[key])}" for key in keys)


def _find_unsupported(t2t: Mapping[str, Any], table: str) -> list[str]:
    """Returns the hyper-parameters whose values are not in a table of hparams.yaml."""
    allowed = _TABLES[table].items()
    return [key for key, values in allowed if key in t2t and t2t[key] not in values]


def _find_untranslatable(values: Mapping[str, Any]) -> list[str]:
    """Returns translated hyper-parameters whose values have no equivalent."""
    keys = []
    if _sequences(values) not in _NORMS:
        keys += ["layer_preprocess_sequence", "layer_postprocess_sequence"]
    if values["pos"] not in _POSITIONS:
        keys.append("pos")
    heads = values["num_heads"]
    channels = ["attention_key_channels", "attention_value_channels"]
    if heads < 1 or any(values[key] % heads for key in channels):
        keys += ["num_heads", *channels]
    relative = values["self_attention_type"] == "dot_product_relative"
    if relative and values["max_relative_position"] < 1:
        keys.append("max_relative_position")
    return keys


def _sequences(values: Mapping[str, Any]) -> tuple[str, str]:
    return values["layer_preprocess_sequence"], values["layer_postprocess_sequence"]


def _learning_rate(values: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the equivalent schedule and scale, or None if there is none.

    In utils/learning_rate.py, "legacy" with "noam" is 5000 * 0.002 * learning_rate
    times the paper's rate. Other schedules are products of named factors.
    """
    factors = Counter(
        name.strip() for name in values["learning_rate_schedule"].split("*")
    )
    del factors[""]
    noam = values["learning_rate_decay_scheme"] == "noam"
    if factors == {"legacy": 1} and noam:
        return {
            "learning_rate_schedule": "paper",
            "learning_rate_scale": 10 * values["learning_rate"],
        }
    widths, constants = factors.pop("rsqrt_hidden_size", 0), factors.pop("constant", 0)
    scale = values["learning_rate_constant"] ** constants
    hidden = values["hidden_size"]
    if factors == {"linear_warmup": 1, "rsqrt_decay": 1}:
        # The schedule "t2t" contains the factor d_model^-0.5 once.
        formula, scale = "t2t", scale * hidden ** ((1 - widths) / 2)
    elif factors == {"rsqrt_decay": 1}:
        formula, scale = "rsqrt_decay", scale * hidden ** (-widths / 2)
    else:
        return None
    return {"learning_rate_schedule": formula, "learning_rate_scale": float(scale)}


def _is_like(t2t: Mapping[str, Any], key: str, default: object) -> bool:
    """Returns whether a value has the type of tensor2tensor's default."""
    value = t2t.get(key, default)
    if value is None:
        return key in ("pos", "clip_grad_norm")
    if isinstance(default, bool):
        return isinstance(value, bool) or value in (0, 1)
    if isinstance(default, float):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return type(value) is type(default)


def _parse_value(text: str) -> Any:
    """Parses a number or boolean; returns other text unchanged."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
