"""Flags of `train` that extend the vocabulary of the model of --init_from."""

import argparse

from t2t_repro.command_line import cli
from t2t_repro.system.errors import UserError


def add_vocabulary_flags(parser: cli.ArgumentParser) -> None:
    """Adds the flags."""
    parser.add_argument(
        "--vocab",
        choices=("keep", "extend"),
        default="keep",
        help="vocabulary of a training with --init_from: that of the model, or "
        "extended by words, whose embeddings start as the mean of their old pieces",
    )
    words = parser.add_mutually_exclusive_group()
    words.add_argument(
        "--vocab_tokens",
        type=cli.path,
        metavar="FILE",
        help="words for --vocab extend, one per line",
    )
    words.add_argument(
        "--vocab_words",
        type=cli.int_range(1),
        metavar="N",
        help="for --vocab extend, add the N words that save the most tokens in the "
        "training text",
    )


def check(args: argparse.Namespace) -> None:
    """Raises UserError if a flag of --vocab extend is missing or has no effect."""
    extends = args.vocab == "extend"
    if extends and not args.init_from:
        raise UserError(
            "--vocab extend needs --init_from, the model whose vocabulary it extends"
        )
    if extends != bool(args.vocab_tokens or args.vocab_words):
        raise UserError(
            "--vocab extend needs --vocab_tokens or --vocab_words, and these flags "
            "need --vocab extend"
        )
