"""The bounds of a model's products in 8 bits: found on real text, kept with the model.

They are found by translating some lines in float32 and noting between what values the
rows of each product lie. They are constants of the weights from then on, so that a
translation in 8 bits depends on its sentence alone. ``int8_bounds.json`` in the model
directory holds them for each checkpoint, by the SHA-256 of its weights.
"""

import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from t2t_repro import fast
from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.fast import int8_matmul, quantization
from t2t_repro.fast.quantization import ActivationRange, RangeObserver
from t2t_repro.models.transformer import Transformer
from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.system.atomic_file import read_lines, write_text_atomically
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.tokenizer import Tokenizer
from t2t_repro.translation.translator import Translator

BOUNDS_FILE = "int8_bounds.json"
MOST_LINES = 256
"""Lines that are translated to find bounds, evenly spread over the text."""

_DAMAGED = "{} is damaged; remove it, and bounds are found again"

SHARE = 1.0
"""The share of positions all of whose values are within the bounds."""


def bounds_on(
    lines: Sequence[str],
    model: Transformer,
    tokenizer: Tokenizer,
    search: DecodingConfig,
) -> dict[str, ActivationRange]:
    """Finds the bounds of a built model's products in a translation of lines.

    Args:
        lines: sentences.
        model: computes in float32.
        tokenizer: its vocabulary.
        search: how it translates.
    """
    with RangeObserver(model) as observer:
        translator = Translator(model, tokenizer, search)
        for _ in translator.translate_lines(lines):
            pass
    return observer.bounds(SHARE)


def quantize_model(
    model: Transformer,
    home: ModelDir,
    search: DecodingConfig,
    calibration_file: str | None = None,
) -> None:
    """Computes a model's products in 8 bits, within the bounds that are kept with it.

    Where there are none, or a text is given, they are found and kept.

    Args:
        model: built, with the weights of a checkpoint.
        home: its directory.
        search: how it translates.
        calibration_file: a text to find them on; None: the validation split.

    Raises:
        UserError: this machine cannot compute in 8 bits, there is no text, the file of
            the bounds is damaged, or no optimized implementation is installed.
    """
    if not fast.is_installed():
        raise UserError(
            "--precision int8 needs the optimized implementations; leave --no-fast and "
            f"{fast.FAST}=0 out, or compute in float32"
        )
    reason = int8_matmul.unsupported_reason()
    if reason:
        raise UserError(f"{reason}; compute in float32")
    tokenizer = home.tokenizer()
    weights = Translator(model, tokenizer, search).fingerprint()
    path = home.path / BOUNDS_FILE
    kept = _read(path)
    if calibration_file or weights not in kept:
        name, lines = _text(home, calibration_file)
        print(
            f"finding the bounds of 8-bit products: translating {len(lines)} lines of "
            f"{name} in float32 ...",
            file=sys.stderr,
            flush=True,
        )
        found = bounds_on(lines, model, tokenizer, search)
        kept[weights] = {
            "text": name,
            "lines": len(lines),
            "share_of_positions": SHARE,
            "bounds": {name: [*bounds] for name, bounds in found.items()},
        }
        try:
            write_text_atomically(path, json.dumps(kept, indent=1) + "\n")
        except OSError as error:
            print(f"{path} is not kept: {error.strerror}", file=sys.stderr, flush=True)
    try:
        bounds = {
            name: ActivationRange(*map(float, kept[weights]["bounds"][name]))
            for name in quantization.matmul_groups(model)
        }
        if not all(low <= 0 <= high and low < high for low, high in bounds.values()):
            raise ValueError
    except (ValueError, TypeError, KeyError):
        raise UserError(_DAMAGED.format(path)) from None
    quantization.quantize_model(model, bounds)


def _read(path: Path) -> dict[str, Any]:
    """Reads the bounds of all checkpoints; none where there is no file."""
    if not path.exists():
        return {}
    with suppress(ValueError, RecursionError):  # UnicodeDecodeError is a ValueError.
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, dict):
            return found
    raise UserError(_DAMAGED.format(path))


def _text(home: ModelDir, calibration_file: str | None) -> tuple[str, list[str]]:
    """Returns the name of the text that bounds are found on, and lines of it."""
    if calibration_file:
        name, lines = calibration_file, read_lines(calibration_file)
    else:
        if home.provenance().problem is None:
            raise UserError(
                f"--precision int8: {home.path} was imported, so it has no validation "
                "split; give text of its source language as --calibration_file"
            )
        problem = home.problem()
        name = problem.description("val")
        lines = [source for source, _ in problem.pairs("val")]
    lines = [line for line in lines if line.strip()]
    if not lines:
        raise UserError(f"{name} has no text; give another --calibration_file")
    return name, lines[:: -(-len(lines) // MOST_LINES)]
