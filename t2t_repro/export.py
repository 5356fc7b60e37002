"""Exports a model as a SavedModel that takes and gives plain text."""

from collections.abc import Sequence
from pathlib import Path

from t2t_repro import cli


def _parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser(
        "Writes EXPORT_DIR/<integer>/, a SavedModel whose serving_default takes text "
        "and returns translations and scores. Beam size and alpha are fixed in it."
    )
    parser.add_argument("--model_dir", required=True, help="folder of the model")
    parser.add_argument(
        "--export_dir", required=True, help="folder of the exported versions"
    )
    cli.add_search_flags(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags and writes the next version."""
    args = _parser().parse_args(argv)
    cli.start_tensorflow(args.verbose)
    from t2t_repro.loading import load_translator
    from t2t_repro.model_dir import ModelDir
    from t2t_repro.serving.saved_model import export

    translator, checkpoint = load_translator(
        ModelDir(Path(args.model_dir)), args.checkpoint, args.beam_size, args.alpha
    )
    version = export(translator, Path(args.export_dir))
    cli.print_result(
        f"exported {checkpoint} to {version}",
        {"checkpoint": checkpoint, "saved_model": str(version)},
        args.json,
    )


if __name__ == "__main__":
    cli.run(main)
