"""Exports a model for TensorFlow Serving, another program, LiteRT or a browser.

The output folder is EXPORT_DIR/VERSION, with the next integer as VERSION. A SavedModel
translates text to text, or ids to ids, with a fixed beam size and alpha; the
configuration files of TensorFlow Serving are written to EXPORT_DIR. With --format
ctranslate2 the folder contains a CTranslate2 model, which translates subwords to
subwords. With --format keras_hub it contains a preset, which keras-hub loads with any
backend of Keras. With --format litert it contains a LiteRT model and
litert_client.py, which translates with it. With --format live_page it contains the page
of visualize --live. With --format transformers or marian it contains a model that
import_marian has imported, for the program of this name.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from t2t_repro.command_line import cli, model_flags
from t2t_repro.runs.run_metadata import META_FILE, require_model
from t2t_repro.serving.exports import FORMATS
from t2t_repro.serving.exports.export_format import ExportFormat, ExportOptions
from t2t_repro.serving.server_files import default_model_name
from t2t_repro.system.errors import UserError

_OF_INT8 = ("calibration_file", "int8_weights")


def _parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser(__doc__)
    model_flags.add_model_flags(parser)
    parser.add_argument(
        "--export_dir", type=cli.path, required=True, help="folder of all versions"
    )
    model_flags.add_search_flags(parser)
    parser.add_argument(
        "--format",
        choices=dict.fromkeys(each.name for each in FORMATS),
        default="saved_model",
        help="format of the export",
    )
    parser.add_argument(
        "--precision",
        default="float32",
        choices=sorted({name for each in FORMATS for name in each.precisions}),
        help="precision of the weights: float32, bfloat16 or int8 in a SavedModel; "
        "float32, int8, int16 or float16 for CTranslate2; float32 or int8 for LiteRT",
    )
    parser.add_argument(
        "--input",
        choices=("text", "ids"),
        default="text",
        help="input and output of a SavedModel: text, or ids, which any TensorFlow "
        "runtime supports",
    )
    model_flags.add_calibration_flag(parser)
    parser.add_argument(
        "--int8_weights",
        type=int,
        choices=(7, 8),
        help="bits of the weights with --precision int8: 7 for any x86-64 processor, 8 "
        "for processors with VNNI (default: 8 if this processor sums them exactly)",
    )
    parser.add_argument(
        "--max_input_length",
        type=cli.int_range(2),
        help="subwords to which longer texts are cut, EOS included (default: 512, and "
        "128 for LiteRT)",
    )
    parser.add_argument(
        "--with_terms",
        action="store_true",
        help='add the signature "terms", whose requests contain lexical constraints '
        "for each text",
    )
    parser.add_argument(
        "--model_name",
        help="name of the model on the server or in the page (default: the name of "
        "MODEL_DIR)",
    )
    parser.add_argument("--licence", help="licence of the weights in the model card")
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags and writes the next version."""
    args = _parser().parse_args(argv)
    chosen = _chosen_format(args)
    model_dir, export_dir = Path(args.model_dir), Path(args.export_dir)
    require_model(model_dir)
    if (export_dir / META_FILE).exists():
        raise UserError(
            f"--export_dir {export_dir} is a model directory; name another folder"
        )
    model_name = args.model_name or default_model_name(model_dir)
    chosen.check_folder(export_dir, model_name)
    # The graph must not depend on the exporting machine; few servers have GPUs.
    no_fast = args.no_fast or not chosen.supports_fast
    cli.start_models(args.verbose, no_fast, device="CPU")
    from t2t_repro.translation.loading import load_models

    loaded = load_models(
        model_dir,
        args.checkpoint,
        "float32" if chosen.converts else args.precision,
        args.calibration_file,
        args.int8_weights,
    )
    options = ExportOptions(
        precision=args.precision,
        beam_size=args.beam_size,
        alpha=args.alpha,
        max_input_length=args.max_input_length,
        with_terms=args.with_terms,
        model_name=model_name,
        licence=args.licence,
    )
    result = chosen.export(loaded, export_dir, options)
    cli.print_result(
        f"exported {result['checkpoint']} to {result[args.format]}", result, args.json
    )


def _chosen_format(args: Namespace) -> ExportFormat:
    """Returns the format; raises UserError if it lacks one of the flags."""
    takes_ids = args.input == "ids"
    formats = [each for each in FORMATS if each.takes_ids == takes_ids]
    chosen = next((each for each in formats if each.name == args.format), None)
    if chosen is None:
        raise UserError("--input ids needs --format saved_model")
    if args.precision not in chosen.precisions:
        raise UserError(
            f"--precision {args.precision} is not available with --format "
            f"{args.format}; use {', '.join(chosen.precisions)}"
        )
    for flag in sorted({flag for each in FORMATS for flag in each.flags}):
        value = getattr(args, flag)
        if value is None or value is False:
            continue
        if flag not in chosen.flags:
            kinds = [each for each in FORMATS if flag in each.flags]
            names = " or ".join(each.name for each in kinds if not each.takes_ids)
            text = " and --input text" if takes_ids else ""
            raise UserError(f"--{flag} needs --format {names}{text}")
        if flag in _OF_INT8 and args.precision != "int8":
            raise UserError(f"--{flag} needs --precision int8")
    return chosen


if __name__ == "__main__":
    cli.run(main)
