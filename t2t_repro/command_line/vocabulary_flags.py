"""Flags of `train` that change the vocabulary of the model of --init_from."""

import argparse

from t2t_repro.command_line import cli
from t2t_repro.system.errors import UserError


def add_vocabulary_flags(parser: cli.ArgumentParser) -> None:
    """Adds the flags."""
    parser.add_argument(
        "--vocab",
        choices=("keep", "extend", "replace"),
        default="keep",
        help="vocabulary of a training with --init_from: that of the model; extended "
        "by words; or a new one, built from the training text or of --vocab_file. "
        "Embeddings of new tokens start as the mean of their old pieces",
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
    """Raises UserError if a flag for --vocab is missing or cannot be combined."""
    extends = args.vocab == "extend"
    if args.vocab != "keep" and not args.init_from:
        raise UserError(
            f"--vocab {args.vocab} needs --init_from, the model whose vocabulary it "
            f"{args.vocab}s"
        )
    if args.vocab == "replace" and args.guard:
        raise UserError(
            "--guard compares with the first model, which --vocab replace changes; "
            "omit one of them"
        )
    if extends != bool(args.vocab_tokens or args.vocab_words):
        raise UserError(
            "--vocab extend needs --vocab_tokens or --vocab_words, and these flags "
            "need --vocab extend"
        )
