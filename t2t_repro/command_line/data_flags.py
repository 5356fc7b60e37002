"""Data flags of the commands `datagen` and `train`."""

import argparse
from collections.abc import Iterable

from t2t_repro.command_line import cli


def add_data_flags(
    parser: argparse.ArgumentParser, problems: Iterable[str], required: bool
) -> None:
    """Adds the flags of the problem, its languages, data directory and vocabulary.

    Args:
        parser: Parser of the command.
        problems: Names of all problems; part of the help text.
        required: Whether --problem and --data_dir are required.
    """
    default = "" if required else " (default: the set's)"
    parser.add_argument(
        "--problem",
        required=required,
        help=f"one of {', '.join(problems)}, or MODULE:CLASS for your own{default}",
    )
    parser.add_argument("--source_lang", help="source language, e.g. en")
    parser.add_argument("--target_lang", help="target language, e.g. de")
    parser.add_argument(
        "--data_dir",
        type=cli.path,
        required=required,
        default=None if required else "data",
        help="folder of the data: your text files, vocabularies and encoded shards",
    )
    parser.add_argument(
        "--vocab_file",
        type=cli.path,
        help="existing vocabulary to use (*.model, *.subwords or *.marian) instead of "
        "building one",
    )
