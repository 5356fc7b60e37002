"""How a model's own program searches by default, as hyper-parameters."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from t2t_repro.interop.numbers import number, whole_number
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


def marian_search(
    folder: Path, settings: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Translates decoder.yml into hyper-parameters of the search.

    Returns them, and the names of the settings that the search here does not have.
    Raises UserError if a setting is not a number.
    """
    where = f"--folder {folder}"
    # Lists name files.
    given = {name: value for name, value in settings.items() if isinstance(value, str)}
    left = sorted(given.keys() - _MARIAN.keys())
    given = _MARIAN | given

    def value(name: str) -> float:
        return number(where, name, given[name])

    if given["allow-unk"] not in ("true", "false"):
        raise UserError(
            f"{where}: allow-unk must be true or false, not {given['allow-unk']!r:.40}"
        )
    hparams = {
        "search": "marian",
        "beam_size": whole_number(where, "beam-size", given["beam-size"]),
        "alpha": value("normalize"),
        "word_penalty": value("word-penalty"),
        "decode_length_factor": value("max-length-factor"),
        "decode_extra_length": 0,
        "allow_unknown": given["allow-unk"] == "true",
    }
    return hparams, left


def transformers_search(
    folder: Path, settings: Mapping[str, Any], padding: int
) -> tuple[dict[str, Any], list[str]]:
    """Translates Transformers' settings as `marian_search` does Marian's.

    `padding` is the id of <pad>.
    """
    left = [
        f"{name}={value!r:.40}"
        for name, value in settings.items()
        if value not in (None, False, [[padding]]) and name not in _KNOWN
    ]
    if not settings.get("renormalize_logits"):
        left.append("<pad> in the softmax")
    where = f"--folder {folder}"
    given = {name: value for name, value in settings.items() if value is not None}
    given = _TRANSFORMERS | given

    def whole(name: str) -> int:
        return whole_number(where, name, given.get(name, _MAX_LENGTH))

    # In max_length the start symbol counts.
    has_new = "max_new_tokens" in given
    longest = whole("max_new_tokens") if has_new else whole("max_length") - 1
    hparams = {
        "search": "transformers",
        "beam_size": whole("num_beams"),
        "alpha": number(where, "length_penalty", given["length_penalty"]),
        "decode_length_factor": 0.0,
        "decode_extra_length": longest,
    }
    return hparams, sorted(left)
