"""Imports a model that was trained with Marian, such as OPUS-MT's.

It converts an OPUS-MT download, a Marian training folder or a MarianMTModel of Hugging
Face Transformers to a model directory. All other commands work on this directory, but
evaluate needs --source_file and --reference_file because the training data are unknown.
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
        "--folder",
        type=cli.path,
        required=True,
        help="folder with source.spm and target.spm, and either decoder.yml, *.npz and "
        "*.vocab.yml (Marian) or config.json and weights (Transformers)",
    )
    parser.add_argument(
        "--positions",
        choices=("marian", "transformers"),
        default="marian",
        help="positional encoding and norm epsilon as in Marian's training, or as in "
        "Transformers",
    )
    parser.add_argument(
        "--decoder_yml",
        type=cli.path,
        help="name of the decoder.yml if the folder has several",
    )
    parser.add_argument(
        "--activation",
        choices=("gelu", "gelu_sigmoid"),
        help="variant of GELU in a Marian model (default: that of the Marian version)",
    )
    return parser


def _read(args: Namespace) -> "Source":
    from t2t_repro.interop.marian.importer import read

    return read(Path(args.folder), args.positions, args.decoder_yml, args.activation)


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, imports the model and prints the report."""
    import_command.run(_parser(), argv, _read)


if __name__ == "__main__":
    cli.run(main)
