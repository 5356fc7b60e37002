"""Translation of the options in Marian's weight files into hyper-parameters."""

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
"""Forms of GELU: exact, and the approximation x sigmoid(1.702 x)."""

_ACTIVATION = "transformer-ffn-activation"
_ACTIVATIONS = ("relu", "swish", "gelu")
_TABLES = own_tables(__file__)
_NEEDED: dict[str, list[str]] = _TABLES["needed"]
_KNOWN = {*_NEEDED, *_TABLES["read"]}
_UNSET = ("", "false", "0", "default")
# Maps Marian's options (preprocess, postprocess, postprocess-top), without "d" for
# dropout, to the value of `norm`.
NORMS: dict[tuple[str, ...], str] = {("", "an", ""): "post", ("n", "a", "n"): "pre"}

_TextLoader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)

Settings = dict[str, str | list[str]]
"""Values by name. They stay text, because `no` and `on` are words in vocabularies."""


def read_yaml(path: Path) -> Settings:
    """Reads a YAML file whose values are strings or lists of strings.

    Raises:
        UserError: The file cannot be read, does not have this form, or repeats a name.
    """
    text = read_text(path)
    try:
        return parse_yaml(text)
    except (yaml.YAMLError, RecursionError):
        raise UserError(f"{path} is not valid YAML; download it again") from None
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None


def parse_yaml(text: str) -> Settings:
    """Parses YAML text whose values are strings or lists of strings.

    Raises:
        yaml.YAMLError: The text is not valid YAML.
        RecursionError: The text is nested too deeply.
        ValueError: The text has another structure, or repeats a name.
    """
    root = yaml.compose(text, _TextLoader)
    if not isinstance(root, yaml.MappingNode):
        raise ValueError("must contain lines of the form 'name: value'")
    settings: Settings = {}
    # Only flat text is accepted, because nested references could expand to gigabytes.
    for name, value in root.value:
        is_list = isinstance(value, yaml.SequenceNode)
        texts = value.value if is_list else [value]
        if not all(isinstance(each, yaml.ScalarNode) for each in (name, *texts)):
            raise ValueError("must contain only lines of the form 'name: value'")
        if name.value in settings:
            raise ValueError(f"duplicate name {name.value!r:.40}; download it again")
        items = [each.value for each in texts]
        settings[name.value] = items if is_list else value.value
    return settings


def parse_options(path: Path, text: np.ndarray | None) -> dict[str, str]:
    """Parses Marian's options, which the weight file contains as an array.

    Args:
        path: Path of the weight file, for messages.
        text: Bytes of the YAML text, or None if the file lacks the array.

    Returns:
        Values by name; the items of lists are joined by spaces.

    Raises:
        UserError: The options are missing or damaged.
    """
    try:
        if text is None or text.dtype.itemsize != 1:
            raise ValueError
        options = parse_yaml(text.tobytes().rstrip(b"\0").decode())
    except (ValueError, yaml.YAMLError, RecursionError):
        raise UserError(
            f"{path}: {OPTIONS}, the options of the training, is missing or damaged; "
            "use the unaltered file that Marian wrote"
        ) from None
    return {
        name: value if isinstance(value, str) else " ".join(value)
        for name, value in options.items()
    }


def reject_unsupported(path: Path, options: Mapping[str, str]) -> None:
    """Raises UserError if an option has an unsupported value."""
    for name, value in options.items():
        known = name in _KNOWN or re.fullmatch("|".join(_TABLES["ignored"]), name)
        unknown = name.startswith("transformer-") and not known
        allowed = _UNSET if unknown else _NEEDED.get(name)
        if allowed is not None and value not in allowed:
            raise UserError(
                f"{path}: {name}: {value} is not supported; "
                f"supported: {', '.join(map(repr, allowed))}"
            )


def unused_options(options: Mapping[str, str]) -> list[str]:
    """Returns the names of options that are set but do not affect the model."""
    return [
        name
        for name, value in options.items()
        if name not in _KNOWN and value not in _UNSET
    ]


def translate_options(
    path: Path, options: Mapping[str, str], activation: str | None
) -> dict[str, Any]:
    """Translates Marian's options into hyper-parameters of the model.

    Args:
        path: Path of the weight file, for messages.
        options: Marian's options.
        activation: Variant of GELU; None derives it from the options.

    Raises:
        UserError: An option is missing, invalid or not supported.
    """

    def number(name: str, default: str | None = None) -> int:
        return whole_number(str(path), {name: default, **options}, name)

    defaults = {"preprocess": "", "postprocess": "dan", "postprocess-top": ""}
    places = {p: options.get(f"transformer-{p}", d) for p, d in defaults.items()}
    norm = NORMS.get(tuple(place.replace("d", "") for place in places.values()))
    if norm is None:
        values = ", ".join(f"transformer-{p}: {v!r}" for p, v in places.items())
        raise UserError(
            f"{path}: {values} is not supported; supported: '', 'dan', '' (norm "
            "after) and 'n', 'da', 'n' (norm before)"
        )
    no_positions = options.get("transformer-disable-position-embeddings") == "true"
    return {
        "d_model": number("dim-emb"),
        "d_ff": number("transformer-dim-ffn"),
        "decoder_d_ff": number("transformer-decoder-dim-ffn", "0") or None,
        "num_heads": number("transformer-heads"),
        "num_layers": number("enc-depth"),
        "num_decoder_layers": number("dec-depth"),
        "norm": norm,
        "activation": _activation(path, options, activation),
        "position": "none" if no_positions else "sinusoid",
        "scale_embeddings": True,
    }


def select_gelu(options: Mapping[str, str]) -> str | None:
    """Returns the GELU variant that the recorded version of Marian computes.

    Returns None if the model does not use GELU or the version is not recorded.
    """
    version = re.match(r"v?(\d{1,9})\.(\d{1,9})\.(\d{1,9})", options.get("version", ""))
    if version is None or options.get(_ACTIVATION) != "gelu":
        return None
    exact = tuple(map(int, version.groups())) > (1, 12, 0)
    return "gelu" if exact else "gelu_sigmoid"


def _activation(path: Path, options: Mapping[str, str], flag: str | None) -> str:
    """Returns the activation; the flag or Marian's version selects the GELU variant."""
    name = options.get(_ACTIVATION, "")
    if name not in _ACTIVATIONS:
        raise UserError(
            f"{path}: transformer-ffn-activation: {name} is not supported; "
            f"supported: {', '.join(_ACTIVATIONS)}"
        )
    if flag is not None and (name != "gelu" or flag not in GELUS):
        raise UserError(
            f"{path}: transformer-ffn-activation: {name}, but --activation {flag}; "
            f"the flag must be {' or '.join(GELUS)}, and only for models with gelu"
        )
    activation = flag or (name if name != "gelu" else select_gelu(options))
    if activation is None:
        raise UserError(
            f"{path} does not record the version of Marian; give --activation "
            "gelu_sigmoid for versions up to 1.12.0, or --activation gelu"
        )
    return activation
