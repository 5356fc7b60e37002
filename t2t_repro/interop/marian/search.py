"""How a model's own program searches by default, as hyper-parameters."""

import math
from collections.abc import Mapping
from typing import Any

from t2t_repro.interop.marian.model import MarianModel
from t2t_repro.system.errors import UserError

# What Marian's decoder does unless decoder.yml tells it otherwise (its --help).
_MARIAN = {
    "beam-size": "12",
    "normalize": "0",
    "word-penalty": "0",
    "max-length-factor": "3",
    "allow-unk": "false",
}
# The same of Transformers' generate (generation/configuration_utils.py).
_TRANSFORMERS: dict[str, Any] = {"num_beams": 1, "length_penalty": 1.0}
_KNOWN = {*_TRANSFORMERS, "max_length", "max_new_tokens", "renormalize_logits"}
_MAX_LENGTH = 20


def search_hparams(model: MarianModel) -> dict[str, Any]:
    """Returns the hyper-parameters of the search that a folder's settings ask for.

    UserError: a setting is no number.
    """
    if model.program == "Marian":
        return _marian(model)
    return _transformers(model)


def search_left(model: MarianModel) -> list[str]:
    """Names the settings that the search here does not have."""
    given = model.search
    if model.program == "Marian":
        return sorted(given.keys() - _MARIAN.keys())
    left = []
    padding = (model.target or model.source).pieces.index("<pad>")
    for name, value in given.items():
        if value in (None, False, [[padding]]) or name in _KNOWN:
            continue
        left.append(f"{name}={value!r:.40}")
    if not given.get("renormalize_logits"):
        left.append("<pad> in the softmax")
    return sorted(left)


def _number(model: MarianModel, settings: Mapping[str, Any], name: str) -> float:
    value = settings[name]
    try:
        if isinstance(value, bool) or not math.isfinite(number := float(value)):
            raise ValueError
    except (TypeError, ValueError):
        raise UserError(
            f"--folder {model.weights_file.parent}: {name} in its settings of the "
            f"search must be a number, not {value!r:.40}"
        ) from None
    return number


def _whole(model: MarianModel, settings: Mapping[str, Any], name: str) -> int:
    number = _number(model, settings, name)
    if number != int(number):
        raise UserError(
            f"--folder {model.weights_file.parent}: {name} in its settings of the "
            f"search must be a whole number, not {number}"
        )
    return int(number)


def _marian(model: MarianModel) -> dict[str, Any]:
    settings = _MARIAN | model.search
    if settings["allow-unk"] not in ("true", "false"):
        raise UserError(
            f"--folder {model.weights_file.parent}: allow-unk in its settings of the "
            f"search must be true or false, not {settings['allow-unk']!r:.40}"
        )
    return {
        "search": "marian",
        "beam_size": _whole(model, settings, "beam-size"),
        "alpha": _number(model, settings, "normalize"),
        "word_penalty": _number(model, settings, "word-penalty"),
        "decode_length_factor": _number(model, settings, "max-length-factor"),
        "decode_extra_length": 0,
        "allow_unknown": settings["allow-unk"] == "true",
    }


def _transformers(model: MarianModel) -> dict[str, Any]:
    given = {name: value for name, value in model.search.items() if value is not None}
    settings = _TRANSFORMERS | given
    if "max_new_tokens" in settings:
        longest = _whole(model, settings, "max_new_tokens")
    else:  # The start symbol counts.
        longest = _whole(model, {"max_length": _MAX_LENGTH} | settings, "max_length")
        longest -= 1
    return {
        "search": "transformers",
        "beam_size": _whole(model, settings, "num_beams"),
        "alpha": _number(model, settings, "length_penalty"),
        "decode_length_factor": 0.0,
        "decode_extra_length": longest,
    }
