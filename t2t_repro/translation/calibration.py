"""Calibration of int8 quantization.

Calibration translates some lines in float32 and measures the activation range of each
matmul. The ranges are saved and reused, so an int8 translation depends only on its
sentence. ``int8_bounds.json`` in the model directory contains the ranges of each
checkpoint under the SHA-256 of its weights.
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
from t2t_repro.fast.quantization import ActivationRange
from t2t_repro.fast.range_observer import RangeObserver
from t2t_repro.fast.searchers import fastest_searcher
from t2t_repro.models.transformer import Transformer
from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.system.atomic_file import read_lines, write_text_atomically
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.tokenizer import Tokenizer
from t2t_repro.translation.translator import Translator

BOUNDS_FILE = "int8_bounds.json"
MOST_LINES = 256
"""Maximum number of lines for calibration, taken at equal intervals from the text."""

_CHOICES = {
    8: "int8: 8-bit weights, because this processor sums them exactly",
    7: "int8: 7-bit weights, because the sums of 8-bit weights saturate on this "
    "processor (no VNNI)",
}
_DAMAGED = "{} is damaged; remove it to calibrate again"

SHARE = 1.0
"""Fraction of positions whose values must all be within the activation ranges."""


def measure_ranges(
    lines: Sequence[str],
    model: Transformer,
    tokenizer: Tokenizer,
    search: DecodingConfig,
) -> dict[str, ActivationRange]:
    """Translates lines and returns the activation range of each group of matmuls.

    Args:
        lines: Sentences.
        model: Built model in float32.
        tokenizer: Tokenizer of the model.
        search: Settings of the search.
    """
    with RangeObserver(model) as observer:
        searcher = fastest_searcher([model], tokenizer, search)
        translator = Translator(model, tokenizer, search, searcher=searcher)
        for _ in translator.translate_lines(lines):
            pass
    return observer.bounds(SHARE)


def quantize_model(
    model: Transformer,
    directory: ModelDir,
    search: DecodingConfig,
    calibration_file: str | None = None,
    weight_bits: int | None = None,
) -> int:
    """Quantizes a model to int8 with the activation ranges in its directory.

    If the ranges are missing, or `calibration_file` is given, the model is calibrated
    first and the ranges are saved.

    Args:
        model: Built model with the weights of a checkpoint.
        directory: Model directory.
        search: Settings of the search for calibration.
        calibration_file: Text for calibration; None for the validation split.
        weight_bits: Number of bits of the weights, 8 or 7. None for the largest number
            that this machine sums exactly, which the function prints.

    Returns:
        The number of bits.

    Raises:
        UserError: The machine does not support int8, the optimized implementations
            are disabled, calibration text is missing, or the file of ranges is damaged.
    """
    if not fast.is_installed():
        raise UserError(
            "precision int8 needs the optimized implementations; omit --no-fast "
            f"and {fast.FAST}=0, or use float32"
        )
    reason = int8_matmul.unsupported_reason(computes=weight_bits is None)
    if reason:
        raise UserError(f"{reason}; use float32")
    tokenizer = directory.tokenizer()
    weights = Translator(model, tokenizer, search).fingerprint()
    path = directory.path / BOUNDS_FILE
    calibrations = _read(path)
    if calibration_file or weights not in calibrations:
        name, lines = _text(directory, calibration_file)
        print(
            f"calibrating int8: translating {len(lines)} lines of {name} in "
            "float32 ...",
            file=sys.stderr,
            flush=True,
        )
        ranges = measure_ranges(lines, model, tokenizer, search)
        calibrations[weights] = {
            "text": name,
            "lines": len(lines),
            "share_of_positions": SHARE,
            "bounds": {group: [*bounds] for group, bounds in ranges.items()},
        }
        try:
            write_text_atomically(path, json.dumps(calibrations, indent=1) + "\n")
        except OSError as error:
            print(f"cannot save {path}: {error.strerror}", file=sys.stderr, flush=True)
    try:
        ranges = {
            group: ActivationRange(*map(float, calibrations[weights]["bounds"][group]))
            for group in quantization.matmul_groups(model)
        }
        if not all(low <= 0 <= high and low < high for low, high in ranges.values()):
            raise ValueError
    except (ValueError, TypeError, KeyError):
        raise UserError(_DAMAGED.format(path)) from None
    if weight_bits is None:
        weight_bits = int8_matmul.exact_weight_bits()
        print(_CHOICES[weight_bits], file=sys.stderr, flush=True)
    quantization.quantize_model(model, ranges, weight_bits)
    return weight_bits


def _read(path: Path) -> dict[str, Any]:
    """Returns the calibrations of all checkpoints; empty if the file is missing."""
    if not path.exists():
        return {}
    with suppress(ValueError, RecursionError):  # UnicodeDecodeError is a ValueError.
        calibrations = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(calibrations, dict):
            return calibrations
    raise UserError(_DAMAGED.format(path))


def _text(directory: ModelDir, calibration_file: str | None) -> tuple[str, list[str]]:
    """Returns the name of the calibration text, and a selection of its lines."""
    if calibration_file:
        name, lines = calibration_file, read_lines(calibration_file)
    else:
        if directory.provenance().problem is None:
            raise UserError(
                f"precision int8: {directory.path} was imported, so its validation "
                "split is unknown; give a text in its source language as "
                "calibration_file"
            )
        problem = directory.problem()
        name = problem.description("val")
        lines = [source for source, _ in problem.pairs("val")]
    lines = [line for line in lines if line.strip()]
    if not lines:
        raise UserError(
            f"{name} contains only blank lines; give another calibration_file"
        )
    return name, lines[:: -(-len(lines) // MOST_LINES)]
