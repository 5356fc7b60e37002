"""Common code of the commands import_t2t, import_marian and import_opennmt."""

from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_repro.command_line import cli

if TYPE_CHECKING:
    from t2t_repro.interop.source import Source


def parser(description: str | None) -> cli.ArgumentParser:
    """Returns a parser with the common flags of the import commands."""
    parser = cli.ArgumentParser(description)
    parser.add_argument(
        "--model_dir",
        type=cli.path,
        required=True,
        help="new or empty model directory to write",
    )
    for side, default in (("source", "en"), ("target", "de")):
        parser.add_argument(
            f"--{side}_lang",
            help=f"{side} language (default: that of the imported files, or {default})",
        )
    return parser


def run(
    parser: cli.ArgumentParser,
    argv: Sequence[str] | None,
    read: Callable[[Namespace], "Source"],
) -> None:
    """Parses the flags, imports the model that `read` returns, and prints the report.

    Args:
        parser: Parser of the command.
        argv: Arguments; None for the arguments of the process.
        read: Function that reads and checks the model that the flags name.
    """
    args = parser.parse_args(argv)
    cli.start_tensorflow(args.verbose)
    from t2t_repro.interop.import_model import import_model

    languages = args.source_lang, args.target_lang
    report = import_model(lambda: read(args), Path(args.model_dir), languages)
    cli.print_result(report.text(), report.to_dict(), args.json)
