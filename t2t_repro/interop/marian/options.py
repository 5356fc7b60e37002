"""The options that Marian writes into every model, and what they mean here."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from t2t_repro.interop.formats.text import own_tables, read_text
from t2t_repro.interop.numbers import whole_number
from t2t_repro.system.errors import UserError

OPTIONS = "special:model.yml"
GELUS = ("gelu", "gelu_sigmoid")
"""Which there are: exact, and x sigmoid(1.702 x)."""

_ACTIVATION = "transformer-ffn-activation"
_ACTIVATIONS = ("relu", "swish", "gelu")
_TABLES = own_tables(__file__)
_NEEDED: dict[str, list[str]] = _TABLES["needed"]
_KNOWN = {*_NEEDED, *_TABLES["read"]}
_UNSET = ("", "false", "0", "default")
# (preprocess, postprocess, postprocess-top) without dropout, d -> our norm.
_NORMS: dict[tuple[str, ...], str] = {("", "an", ""): "post", ("n", "a", "n"): "pre"}

_TextLoader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)

Settings = dict[str, str | list[str]]
"""Values by name, as text: `no` and `on` are words of a language."""


def read_yaml(path: Path) -> Settings:
    """Reads YAML whose values are text, or lists of text.

    UserError: it cannot be read, or is no such YAML, or a name comes twice.
    """
    text = read_text(path)
    try:
        return parsed_yaml(text)
    except (yaml.YAMLError, RecursionError):
        raise UserError(f"{path} is no YAML; it is damaged, or cut off") from None
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None


def parsed_yaml(text: str) -> Settings:
    """Reads YAML text; raises what `read_yaml` makes a UserError of."""
    root = yaml.compose(text, _TextLoader)
    if not isinstance(root, yaml.MappingNode):
        raise ValueError("must hold lines of the form 'name: value'")
    found: Settings = {}
    # Nothing is built of it but flat text: references could stand for gigabytes.
    for name, value in root.value:
        is_list = isinstance(value, yaml.SequenceNode)
        texts = value.value if is_list else [value]
        if not all(isinstance(each, yaml.ScalarNode) for each in (name, *texts)):
            raise ValueError("must hold lines of the form 'name: value', no others")
        if name.value in found:
            raise ValueError(f"{name.value!r:.40} comes twice; get it again")
        found[name.value] = [each.value for each in texts] if is_list else value.value
    return found


def options_in(path: Path, text: np.ndarray | None) -> dict[str, str]:
    """Reads Marian's options, an array of the weights' file.

    Lists become text, empty ones "". Raises UserError if the options are missing or
    damaged.
    """
    try:
        if text is None or text.dtype.itemsize != 1:
            raise ValueError
        options = parsed_yaml(text.tobytes().rstrip(b"\0").decode())
    except (ValueError, yaml.YAMLError, RecursionError):
        raise UserError(
            f"{path} has no {OPTIONS} that can be read, the options of the training; "
            "Marian writes it into every model"
        ) from None
    return {
        name: value if isinstance(value, str) else " ".join(value)
        for name, value in options.items()
    }


def refuse_others(path: Path, options: Mapping[str, str]) -> None:
    """Raises UserError that names an option this package does not have."""
    for name, value in options.items():
        known = name in _KNOWN or re.fullmatch("|".join(_TABLES["ignored"]), name)
        unknown = name.startswith("transformer-") and not known
        allowed = _UNSET if unknown else _NEEDED.get(name)
        if allowed is not None and value not in allowed:
            raise UserError(f"{path}: {name}: {value} is not supported here")


def without_meaning(options: Mapping[str, str]) -> list[str]:
    """Returns the options that are set and change nothing of such a model."""
    return [
        name
        for name, value in options.items()
        if name not in _KNOWN and value not in _UNSET
    ]


def described_model(
    path: Path, options: Mapping[str, str], activation: str | None
) -> dict[str, Any]:
    """Translates the options into hyper-parameters of the model."""

    def number(name: str, default: str | None = None) -> int:
        return whole_number(str(path), name, options.get(name, default))

    defaults = {"preprocess": "", "postprocess": "dan", "postprocess-top": ""}
    places = {p: options.get(f"transformer-{p}", d) for p, d in defaults.items()}
    norm = _NORMS.get(tuple(place.replace("d", "") for place in places.values()))
    if norm is None:
        given = ", ".join(f"transformer-{p}: {v!r}" for p, v in places.items())
        raise UserError(
            f"{path}: {given} is not supported here; there are dan (norm after) and "
            "n, da, n (norm before)"
        )
    emb = options.get("transformer-postprocess-emb", "d")
    if emb.replace("d", ""):
        raise UserError(
            f"{path}: transformer-postprocess-emb: {emb} is not supported here"
        )
    unplaced = options.get("transformer-disable-position-embeddings") == "true"
    return {
        "d_model": number("dim-emb"),
        "d_ff": number("transformer-dim-ffn"),
        "decoder_d_ff": number("transformer-decoder-dim-ffn", "0") or None,
        "num_heads": number("transformer-heads"),
        "num_layers": number("enc-depth"),
        "num_decoder_layers": number("dec-depth"),
        "norm": norm,
        "activation": _activation(path, options, activation),
        "position": "none" if unplaced else "sinusoid",
        "scale_embeddings": True,
    }


def gelu_of_version(options: Mapping[str, str]) -> str | None:
    """Tells which GELU Marian's version computes; None: no GELU, or no version."""
    version = re.match(r"v?(\d{1,9})\.(\d{1,9})\.(\d{1,9})", options.get("version", ""))
    if version is None or options.get(_ACTIVATION) != "gelu":
        return None
    exact = tuple(map(int, version.groups())) > (1, 12, 0)
    return "gelu" if exact else "gelu_sigmoid"


def _activation(path: Path, options: Mapping[str, str], given: str | None) -> str:
    """Returns the activation; which GELU it is, a flag or Marian's version tells."""
    name = options.get(_ACTIVATION, "")
    if name not in _ACTIVATIONS:
        raise UserError(
            f"{path}: transformer-ffn-activation: {name} is not supported here; there "
            f"are {', '.join(_ACTIVATIONS)}"
        )
    if given is not None and (name != "gelu" or given not in GELUS):
        raise UserError(
            f"{path}: transformer-ffn-activation: {name}, but --activation {given}; "
            f"the flag tells which GELU a model of gelu has ({', '.join(GELUS)})"
        )
    found = given or (name if name != "gelu" else gelu_of_version(options))
    if found is None:
        raise UserError(
            f"{path} does not say which version of Marian made it, and GELU is "
            "x sigmoid(1.702 x) up to 1.12.0: give --activation gelu_sigmoid, or "
            "--activation gelu"
        )
    return found
