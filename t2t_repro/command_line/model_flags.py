"""Flags of the model, the search and the precision."""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

from t2t_repro.command_line import cli
from t2t_repro.hparams.fields import MOST_ALPHA
from t2t_repro.system.errors import UserError
from t2t_repro.system.limits import MOST_OF_SEARCH


class Precision(NamedTuple):
    """Precision of a model's matmuls, and its calibration text; see `load_models`."""

    precision: str
    calibration_file: str | None


def add_model_flags(
    parser: argparse.ArgumentParser, several: bool = True, required: bool = True
) -> None:
    """Adds --model_dir, --checkpoint and --no-fast; `several` allows ensembles."""
    parser.add_argument(
        "--model_dir", type=cli.path, required=required, help="model directory"
    )
    parser.add_argument(
        "--checkpoint",
        type=cli.path,
        default="best",
        help="averaged, latest, best_bleu, best (averaged if it exists and is of the "
        "newest data, else latest), folder of a checkpoint, or another model directory"
        + ("; a comma-separated list translates as an ensemble" if several else ""),
    )
    cli.add_fast_flag(parser)


def add_search_flags(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of the beam search."""
    parser.add_argument(
        "--beam_size",
        type=cli.int_range(1, MOST_OF_SEARCH),
        help="beam size (default: the model's)",
    )
    parser.add_argument(
        "--alpha",
        type=cli.float_range(0, MOST_ALPHA),
        help="exponent of the length penalty (default: the model's)",
    )


def add_decoding_flags(
    parser: argparse.ArgumentParser, model_required: bool = True
) -> None:
    """Adds the flags of every command that translates."""
    add_model_flags(parser, required=model_required)
    add_search_flags(parser)
    parser.add_argument(
        "--batch_size", type=cli.int_range(1), default=32, help="sentences per batch"
    )
    parser.add_argument(
        "--precision",
        choices=("float32", "bfloat16", "int8"),
        default="float32",
        help="precision of matmuls; bfloat16 is fast with AMX, int8 on any x86-64 CPU",
    )
    add_calibration_flag(parser)


def add_calibration_flag(parser: argparse.ArgumentParser) -> None:
    """Adds the flag of the calibration text for int8."""
    parser.add_argument(
        "--calibration_file",
        type=cli.path,
        help="text on which --precision int8 is calibrated (default: the validation "
        "split)",
    )


def select_precision(args: Any) -> Precision:
    """Returns the precision that the flags of `add_decoding_flags` select.

    On a machine without int8 matmuls the function prints the reason and falls back to
    float32.

    Raises:
        UserError: --calibration_file is given without int8.
    """
    if args.precision != "int8":
        if args.calibration_file is not None:
            raise UserError("--calibration_file needs --precision int8")
        return Precision(args.precision, None)
    from t2t_repro.fast.int8_matmul import unsupported_reason

    reason = unsupported_reason()
    if reason:
        cli.log(f"--precision int8: {reason}; using float32")
        return Precision("float32", None)
    return Precision("int8", args.calibration_file)
