"""Imports a Transformer that was trained with OpenNMT-tf 2, or a SavedModel.

It converts a checkpoint of OpenNMT-tf 2, or a SavedModel that was exported by
OpenNMT-tf or t2t_repro, to a model directory. All other commands work on this
directory, but evaluate needs --source_file and --reference_file because the training
data are unknown.
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
    add = parser.add_argument
    add(
        "--checkpoint",
        type=cli.path,
        required=True,
        help="folder of checkpoints, prefix of a checkpoint, or folder of a SavedModel",
    )
    add(
        "--config",
        type=cli.path,
        nargs="+",
        default=(),
        metavar="YML",
        help="configuration files of the training (data.yml); later files override "
        "earlier ones",
    )
    add(
        "--auto_config",
        action="store_true",
        help="use OpenNMT-tf's defaults for --auto_config: a beam size of 4, unless "
        "--config sets another",
    )
    add(
        "--model",
        help="name in OpenNMT-tf's catalog (TransformerBase), or Python file of the "
        "model, which is read but not run (default: the folder's model_description.py)",
    )
    add(
        "--source_spm", type=cli.path, help="SentencePiece model of the source language"
    )
    add(
        "--target_spm", type=cli.path, help="SentencePiece model of the target language"
    )
    add(
        "--vocab_file",
        type=cli.path,
        help="vocabulary file of a SavedModel of t2t_repro; not needed for a "
        "SentencePiece vocabulary",
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
