"""The flags of the data: shared by the commands that prepare and train."""

import argparse
from collections.abc import Iterable


def add_data_flags(
    parser: argparse.ArgumentParser, problems: Iterable[str], required: bool
) -> None:
    """Adds the problem, its languages, its folder and its vocabulary.

    Args:
        parser: the command's.
        problems: names of the problems, for the help.
        required: whether the problem and its folder have no default.
    """
    default = "" if required else " (default: the set's)"
    parser.add_argument(
        "--problem",
        required=required,
        help=f"one of {', '.join(problems)}, or MODULE:CLASS of your own{default}",
    )
    parser.add_argument("--source_lang", help="language to translate from, e.g. en")
    parser.add_argument("--target_lang", help="language to translate into, e.g. de")
    parser.add_argument(
        "--data_dir",
        required=required,
        default=None if required else "data",
        help="folder of the data: own text files, vocabularies, encoded shards",
    )
    parser.add_argument(
        "--vocab_file",
        help="use this vocabulary (*.model, *.subwords, *.marian), build none",
    )
