"""Data flags of the commands `datagen` and `train`."""

import argparse
from collections.abc import Iterable

from t2t_repro.command_line import cli


def add_data_flags(
    parser: argparse.ArgumentParser, problems: Iterable[str], required: bool
) -> None:
    """Adds the flags of the problem, its languages, folders and vocabulary.

    Args:
        parser: Parser of the command.
        problems: Names of all problems; part of the help text.
        required: Whether --problem and --data_dir are required.
    """
    default = several = ""
    if not required:
        default = " (default: the set's)"
        several = (
            "; or several folders with weights, general:1,domain:3 (default: the "
            "set's, or data)"
        )
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
        help="folder of the data: your text files, vocabularies and encoded shards"
        + several,
    )
    parser.add_argument(
        "--shard_dir",
        type=cli.path,
        help="folder for built vocabularies and encoded shards, for example if the "
        "data are read-only (default: --data_dir)",
    )
    parser.add_argument(
        "--vocab_file",
        type=cli.path,
        help="existing vocabulary to use (*.model, *.subwords, *.sides or *.marian) "
        "instead of building one",
    )


def add_validation_flags(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of further validation sets and of the guard set."""
    parser.add_argument(
        "--validation",
        metavar="NAME=DATA,...",
        help="further validation sets, whose scores are only logged: name, and folder "
        "as for --problem files or name of a problem, e.g. news=news,talks=talks "
        "(default: none)",
    )
    parser.add_argument(
        "--guard",
        type=cli.path,
        metavar="DATA",
        help="folder, as for --problem files, or name of a problem, on whose val "
        "split a training with --init_from must not get worse (default: none)",
    )
    parser.add_argument(
        "--guard_tolerance",
        type=cli.float_range(0, 100),
        default=0.5,
        help="points of BLEU that the weights may lose on --guard",
    )
