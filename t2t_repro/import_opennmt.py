"""Imports a Transformer that OpenNMT-tf 2 trained, or a SavedModel."""

from collections.abc import Sequence
from pathlib import Path

from t2t_repro.command_line import cli


def _parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser(
        "Makes a model directory of a Transformer that OpenNMT-tf 2 trained: of its "
        "checkpoint, or of a SavedModel that it, or t2t_repro, exported. The other "
        "commands work on it as on any model, but for evaluate, which needs files."
    )
    parser.add_argument(
        "--checkpoint",
        required=True,
        help="the folder of the training, or of averaged checkpoints; one checkpoint's "
        "prefix; or the folder of a SavedModel",
    )
    parser.add_argument(
        "--model_dir", required=True, help="folder to make; absent or empty"
    )
    parser.add_argument(
        "--config",
        nargs="+",
        default=(),
        metavar="YML",
        help="the configuration of the training (data.yml), which names vocabularies "
        "and SentencePiece models; of several a later one has priority",
    )
    parser.add_argument(
        "--auto_config",
        action="store_true",
        help="OpenNMT-tf was called with it: a beam of 4, unless --config tells",
    )
    parser.add_argument(
        "--model",
        help="the name in OpenNMT-tf's catalog (TransformerBase) or the Python file "
        "that describes the model, which is read, not run; default: the folder's "
        "model_description.py",
    )
    parser.add_argument(
        "--source_spm", help="the SentencePiece model, where sources were cut before"
    )
    parser.add_argument(
        "--target_spm", help="the SentencePiece model, where targets were cut before"
    )
    parser.add_argument(
        "--vocab_file",
        help="the vocabulary of a SavedModel that t2t_repro exported, unless it is "
        "SentencePiece's, which the SavedModel holds",
    )
    parser.add_argument(
        "--source_lang", default="en", help="it translates from (default: en)"
    )
    parser.add_argument(
        "--target_lang", default="de", help="it translates into (default: de)"
    )
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, imports the model and says what came along."""
    args = _parser().parse_args(argv)
    cli.start_tensorflow(args.verbose)
    from t2t_repro.interop.opennmt.importer import Source, import_model

    report = import_model(
        Source(
            checkpoint=Path(args.checkpoint),
            config=tuple(args.config),
            model=args.model,
            auto_config=args.auto_config,
            source_spm=args.source_spm,
            target_spm=args.target_spm,
            vocab_file=args.vocab_file,
            source_lang=args.source_lang,
            target_lang=args.target_lang,
        ),
        Path(args.model_dir),
    )
    cli.print_result(report.text(), report.to_dict(), args.json)


if __name__ == "__main__":
    cli.run(main)
