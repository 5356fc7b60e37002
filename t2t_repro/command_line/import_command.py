"""Flags and report of the commands import_t2t, import_marian and import_opennmt."""

from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_repro.command_line import cli

if TYPE_CHECKING:
    from t2t_repro.interop.source import Source


def parser(description: str | None) -> cli.ArgumentParser:
    """Returns a parser with the flags of every import."""
    parser = cli.ArgumentParser(description)
    parser.add_argument("--model_dir", required=True, help="new or empty folder")
    for side, verb, default in (("source", "from", "en"), ("target", "into", "de")):
        parser.add_argument(
            f"--{side}_lang",
            help=f"language to translate {verb} (default: the files', or {default})",
        )
    return parser


def run(
    parser: cli.ArgumentParser,
    argv: Sequence[str] | None,
    read: Callable[[Namespace], "Source"],
) -> None:
    """Parses the flags, imports the model that `read` returns, and prints the report.

    Args:
        parser: The command's.
        argv: Its arguments; None: those of the process.
        read: Reads and checks a model by the flags.
    """
    args = parser.parse_args(argv)
    cli.start_tensorflow(args.verbose)
    from t2t_repro.interop.import_model import import_model

    languages = args.source_lang, args.target_lang
    report = import_model(lambda: read(args), Path(args.model_dir), languages)
    cli.print_result(report.text(), report.to_dict(), args.json)
