"""Exports a model as a SavedModel for TensorFlow Serving, for CTranslate2 or LiteRT.

The output folder is EXPORT_DIR/VERSION, with the next integer as VERSION. A SavedModel
translates text to text, or ids to ids, with a fixed beam size and alpha; the
configuration files of TensorFlow Serving are written to EXPORT_DIR. With --format
ctranslate2 the folder contains a CTranslate2 model, which translates subwords to
subwords. With --format litert it contains a LiteRT model and litert_client.py, which
translates with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_repro.command_line import cli, model_flags
from t2t_repro.runs.run_metadata import require_model
from t2t_repro.serving.versions import check_format
from t2t_repro.system.errors import UserError

if TYPE_CHECKING:
    from t2t_repro.runs.model_dir import ModelDir
    from t2t_repro.translation.loading import Loaded

# Main file and precisions of each format.
_FORMATS = {
    "saved_model": "saved_model.pb",
    "ctranslate2": "model.bin",
    "litert": "model.tflite",
}
_PRECISIONS = {
    "saved_model": ("float32", "bfloat16", "int8"),
    "ctranslate2": ("float32", "int8", "int16", "float16"),
    "litert": ("float32", "int8"),
}


def _parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser(__doc__)
    model_flags.add_model_flags(parser)
    parser.add_argument(
        "--export_dir", type=cli.path, required=True, help="folder of all versions"
    )
    model_flags.add_search_flags(parser)
    parser.add_argument(
        "--format", choices=_FORMATS, default="saved_model", help="format of the export"
    )
    parser.add_argument(
        "--precision",
        default="float32",
        choices=sorted({name for names in _PRECISIONS.values() for name in names}),
        help="precision of the weights: float32, bfloat16 or int8 in a SavedModel; "
        "float32, int8, int16 or float16 for CTranslate2; float32 or int8 for LiteRT",
    )
    parser.add_argument(
        "--input",
        choices=("text", "ids"),
        default="text",
        help="input and output of a SavedModel: text, or ids, which any TensorFlow "
        "runtime supports (default: text)",
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
        type=cli.at_least(2),
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
        help="name of the model on the server (default: the name of MODEL_DIR)",
    )
    parser.add_argument("--licence", help="licence of the weights in the model card")
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags and writes the next version."""
    args = _parser().parse_args(argv)
    if args.precision not in _PRECISIONS[args.format]:
        raise UserError(
            f"--precision {args.precision} is not available with --format "
            f"{args.format}; use {', '.join(_PRECISIONS[args.format])}"
        )
    is_quantized = args.precision == "int8" and args.format == "saved_model"
    for flag in ("calibration_file", "int8_weights"):
        if getattr(args, flag) is not None and not is_quantized:
            raise UserError(f"--{flag} needs --precision int8 and --format saved_model")
    takes_ids = args.input == "ids"
    if takes_ids and args.format != "saved_model":
        raise UserError("--input ids needs --format saved_model")
    if takes_ids and args.with_terms:
        raise UserError("--with_terms needs --input text")
    require_model(Path(args.model_dir))
    check_format(Path(args.export_dir), _FORMATS[args.format], takes_ids)
    # The graph must not depend on the exporting machine; few servers have GPUs. LiteRT
    # lacks operations of the optimized implementations.
    no_fast = args.no_fast or args.format == "litert"
    cli.start_models(args.verbose, no_fast, device="CPU")
    from t2t_repro.runs.model_dir import ModelDir

    directory = ModelDir(Path(args.model_dir))
    write = {
        "saved_model": _saved_model,
        "ctranslate2": _ctranslate2,
        "litert": _litert,
    }[args.format]
    result = write(directory, args)
    cli.print_result(
        f"exported {result['checkpoint']} to {result[args.format]}", result, args.json
    )


def _saved_model(directory: ModelDir, args: Any) -> dict[str, Any]:
    from t2t_repro.serving import server_files
    from t2t_repro.serving.model_card import model_card
    from t2t_repro.serving.saved_model import write_saved_model
    from t2t_repro.serving.signatures import ServingModule
    from t2t_repro.serving.versions import write_version
    from t2t_repro.translation.loading import load_models
    from t2t_repro.translation.translator import MAX_INPUT_LENGTH

    export_dir = Path(args.export_dir)
    name = server_files.check_model_name(
        args.model_name or server_files.default_model_name(directory.path)
    )
    # Rejects files of another model before the export starts.
    server_files.existing_files(export_dir, name)
    loaded = load_models(
        directory,
        args.checkpoint,
        args.precision,
        args.calibration_file,
        args.int8_weights,
    )
    longest, takes_ids = args.max_input_length or MAX_INPUT_LENGTH, args.input == "ids"
    search = loaded.search(beam_size=args.beam_size, alpha=args.alpha)
    card = model_card(
        loaded,
        search,
        name=name,
        max_input_length=longest,
        precision=args.precision,
        licence=args.licence,
        takes_ids=takes_ids,
    )
    module = ServingModule(
        loaded.models,
        loaded.tokenizer,
        search,
        longest,
        args.with_terms,
        takes_ids,
        directory.provenance().source_lang,
    )
    tokenizer = loaded.tokenizer if takes_ids else None
    version = write_version(
        export_dir,
        lambda folder: write_saved_model(module, folder, name, card, tokenizer),
    )
    existing = server_files.write_server_files(export_dir, name)
    if (args.with_terms or takes_ids) and not server_files.pads_inputs(export_dir):
        what = "numbers of ids" if takes_ids else "numbers of strings of terms"
        cli.log(
            f"{export_dir / server_files.BATCHING} is kept, but this export needs "
            "pad_variable_length_inputs: true there; without it, concurrent requests "
            f"with different {what} fail"
        )
    return {
        "checkpoint": ", ".join(loaded.checkpoints),
        "saved_model": str(version),
        "model_name": name,
        "kept_files": existing,
    }


def _ctranslate2(directory: ModelDir, args: Any) -> dict[str, Any]:
    from t2t_repro.interop.ctranslate2 import write_ctranslate2
    from t2t_repro.serving.versions import write_version

    for flag in ("beam_size", "alpha", "max_input_length"):
        if getattr(args, flag) is not None:
            raise UserError(
                f"--{flag} needs --format saved_model or litert; with CTranslate2, set "
                "it at translation time"
            )
    loaded = _one_model(directory, args)
    version = write_version(
        Path(args.export_dir),
        lambda folder: write_ctranslate2(
            loaded.models[0], loaded.tokenizer, folder, args.precision
        ),
    )
    return {"checkpoint": loaded.checkpoints[0], "ctranslate2": str(version)}


def _litert(directory: ModelDir, args: Any) -> dict[str, Any]:
    from t2t_repro.serving.litert import MAX_INPUT_LENGTH, write_litert
    from t2t_repro.serving.versions import write_version

    loaded = _one_model(directory, args)
    version = write_version(
        Path(args.export_dir),
        lambda folder: write_litert(
            loaded.models[0],
            loaded.tokenizer,
            loaded.search(beam_size=args.beam_size, alpha=args.alpha),
            folder,
            args.precision,
            args.max_input_length or MAX_INPUT_LENGTH,
        ),
    )
    return {"checkpoint": loaded.checkpoints[0], "litert": str(version)}


def _one_model(directory: ModelDir, args: Any) -> Loaded:
    """Loads the model of a format without ensembles and without a model card."""
    from t2t_repro.translation.loading import load_models

    for flag in ("model_name", "licence", "with_terms"):
        if getattr(args, flag):
            raise UserError(f"--{flag} needs --format saved_model")
    loaded = load_models(directory, args.checkpoint)
    if len(loaded.models) > 1:
        raise UserError(
            f"--checkpoint {args.checkpoint}: --format {args.format} does not support "
            "ensembles; name one checkpoint"
        )
    return loaded


if __name__ == "__main__":
    cli.run(main)
