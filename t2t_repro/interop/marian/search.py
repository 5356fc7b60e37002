"""Translation of Marian's and Transformers' search settings into hyper-parameters."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from t2t_repro.interop.numbers import number, whole_number
from t2t_repro.system.errors import UserError

_FILES = ("models", "vocabs")
# Defaults of settings missing from decoder.yml (marian-decoder --help).
_MARIAN = {
    "beam-size": "12",
    "normalize": "0",
    "word-penalty": "0",
    "max-length-factor": "3",
    "allow-unk": "false",
}
# Defaults of Transformers' generate (generation/configuration_utils.py).
_TRANSFORMERS = {"num_beams": 1, "length_penalty": 1.0, "max_length": 20}
_KNOWN = {*_TRANSFORMERS, "max_new_tokens", "renormalize_logits"}


def marian_search(
    folder: Path, settings: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Translates decoder.yml into hyper-parameters of the search.

    Args:
        folder: Model folder, for messages.
        settings: Contents of decoder.yml.

    Returns:
        The hyper-parameters, and the names of settings without an equivalent.

    Raises:
        UserError: A setting has an invalid value.
    """
    where = f"--folder {folder}"
    values = {name: settings[name] for name in settings if name not in _FILES}
    unused = sorted(values.keys() - _MARIAN.keys())
    values = _MARIAN | values
    if values["allow-unk"] not in ("true", "false"):
        raise UserError(
            f"{where}: allow-unk must be true or false, not {values['allow-unk']!r:.40}"
        )
    hparams = {
        "search": "marian",
        "beam_size": whole_number(where, values, "beam-size"),
        "alpha": number(where, values, "normalize"),
        "word_penalty": number(where, values, "word-penalty"),
        "decode_length_factor": number(where, values, "max-length-factor"),
        "decode_extra_length": 0,
        "allow_unknown": values["allow-unk"] == "true",
    }
    return hparams, unused


def transformers_search(
    folder: Path, settings: Mapping[str, Any], padding: int, unknown: int
) -> tuple[dict[str, Any], list[str]]:
    """Translates Transformers' generation settings into hyper-parameters.

    Args:
        folder: Model folder, for messages.
        settings: Generation settings of the model.
        padding: Id of <pad>.
        unknown: Id of <unk>.

    Returns:
        The hyper-parameters, and the names of settings without an equivalent.

    Raises:
        UserError: A setting has an invalid value.
    """
    never = [[padding]], [[padding], [unknown]]
    unused = [
        f"{name}={value!r:.40}"
        for name, value in settings.items()
        if value not in (None, False, *never) and name not in _KNOWN
    ]
    if not settings.get("renormalize_logits"):
        unused.append("<pad> in the softmax")
    where = f"--folder {folder}"
    values = _TRANSFORMERS | {k: v for k, v in settings.items() if v is not None}
    if "max_new_tokens" in values:
        longest = whole_number(where, values, "max_new_tokens")
    else:
        longest = whole_number(where, values, "max_length") - 1  # the start token
    hparams = {
        "search": "transformers",
        "beam_size": whole_number(where, values, "num_beams"),
        "alpha": number(where, values, "length_penalty"),
        "decode_length_factor": 0.0,
        "decode_extra_length": longest,
        "allow_unknown": settings.get("bad_words_ids") != never[1],
    }
    return hparams, sorted(unused)
