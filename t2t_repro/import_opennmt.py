"""Imports a Transformer that OpenNMT-tf 2 trained, or a SavedModel."""

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_repro.command_line import cli, import_command

if TYPE_CHECKING:
    from t2t_repro.interop.source import Source


def _parser() -> cli.ArgumentParser:
    parser = import_command.parser(
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
    return parser


def _read(args: Namespace) -> "Source":
    from t2t_repro.interop.opennmt.importer import read

    return read(
        Path(args.checkpoint),
        config=args.config,
        model=args.model,
        auto_config=args.auto_config,
        source_spm=args.source_spm,
        target_spm=args.target_spm,
        vocab_file=args.vocab_file,
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, imports the model and prints the report."""
    import_command.run(_parser(), argv, _read)


if __name__ == "__main__":
    cli.run(main)
