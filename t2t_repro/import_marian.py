"""Imports a model that Marian trained: OPUS-MT's, or one of Transformers'.

It makes a model directory of an OPUS-MT download, of the folder of a training with
Marian, or of a MarianMTModel of Hugging Face Transformers. The other commands work on
it as on any model, except that evaluate needs files.
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
        required=True,
        help="with decoder.yml, *.npz, *.vocab.yml, or config.json and its weights; "
        "and source.spm, target.spm",
    )
    parser.add_argument(
        "--positions",
        choices=("marian", "transformers"),
        default="marian",
        help="position signal and norm epsilon as in training, or as in Transformers",
    )
    parser.add_argument("--decoder_yml", help="decoder.yml of a folder with several")
    parser.add_argument(
        "--activation",
        choices=("gelu", "gelu_sigmoid"),
        help="which GELU a Marian folder's model has; default: that of its version",
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
