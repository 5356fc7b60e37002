"""Imports a Transformer that OpenNMT-tf 2 trained, or a SavedModel.

It makes a model directory of a checkpoint of OpenNMT-tf 2, or of a SavedModel that
OpenNMT-tf or t2t_repro exported. The other commands work on it as on any model, except
that evaluate needs files.
"""

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_repro.command_line import cli, import_command

if TYPE_CHECKING:
    from t2t_repro.interop.source import Source


def _parser() -> cli.ArgumentParser:
    parser = import_command.parser(__doc__)
    parser.add_argument(
        "--checkpoint",
        required=True,
        help="folder of checkpoints, a checkpoint's prefix, or folder of a SavedModel",
    )
    parser.add_argument(
        "--config",
        nargs="+",
        default=(),
        metavar="YML",
        help="configuration files of the training (data.yml); later ones have priority",
    )
    parser.add_argument(
        "--auto_config",
        action="store_true",
        help="OpenNMT-tf was called with it: a beam of 4, unless --config tells",
    )
    parser.add_argument(
        "--model",
        help="name in OpenNMT-tf's catalog (TransformerBase) or Python file, which is "
        "not run (default: the folder's model_description.py)",
    )
    parser.add_argument("--source_spm", help="SentencePiece model of the sources")
    parser.add_argument("--target_spm", help="SentencePiece model of the targets")
    parser.add_argument(
        "--vocab_file",
        help="vocabulary of a SavedModel of t2t_repro, unless it is SentencePiece's",
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
