"""Additional flags of `translate`."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_repro.command_line import cli
from t2t_repro.fast.thresholds import LINES_THAT_PAY
from t2t_repro.system.errors import UserError
from t2t_repro.system.limits import MOST_OF_SEARCH

if TYPE_CHECKING:
    from t2t_repro.hparams import HParams
    from t2t_repro.translation.options import TranslationOptions

_SAMPLING_FLAGS = ("temperature", "top_k", "top_p", "seed")
# Flags with the name and value of a field of `TranslationOptions`.
_OPTIONS = (
    *("beam_size", "alpha", "extra_length", "min_length", "no_repeat_ngram", "nbest"),
    *("tensor2tensor_rules", "unknown", "split_sentences", "alignment", "xla"),
)


def add_extra_length(parser: argparse.ArgumentParser, output: str) -> None:
    """Adds the flag of the length limit; `output` is the noun in its help text."""
    parser.add_argument(
        "--extra_length",
        type=cli.int_range(0, MOST_OF_SEARCH),
        help=f"subwords by which {output} may be longer than its input (default: the "
        "model's)",
    )


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Adds the additional flags of `translate`."""
    add_extra_length(parser, "a translation")
    add = parser.add_argument
    add(
        "--min_length",
        type=cli.int_range(1, MOST_OF_SEARCH),
        help="minimum number of subwords of a translation, EOS included",
    )
    add(
        "--no_repeat_ngram",
        type=cli.int_range(1, MOST_OF_SEARCH),
        help="length in subwords of the sequences that may not occur twice in a "
        "translation",
    )
    add(
        "--prefix_file",
        type=cli.path,
        help="file with one prefix per input line; each translation begins with its "
        "prefix, which may be empty",
    )
    add(
        "--terms",
        type=cli.path,
        help="file of lexical constraints: a source term, a tab and a target term per "
        "line",
    )
    add(
        "--placeholders",
        action="append",
        metavar="REGEX",
        help="regular expression of text that translations keep, or a preset: braces "
        "({0}, {name}), printf (%%s, %%(x)d, %%1$s), tags (<b>...</b>), urls, emails, "
        "or all; may be repeated",
    )
    add(
        "--unknown",
        choices=("allow", "forbid", "replace"),
        help="allow <unk> in translations, forbid it, or replace it by the aligned "
        "source word (default: the model's allow_unknown)",
    )
    add(
        "--split_sentences",
        action="store_true",
        help="translate each sentence of a line separately (default: only if the line "
        "is longer than the model can read)",
    )
    add(
        "--nbest",
        type=cli.int_range(1, MOST_OF_SEARCH),
        help="number of translations per line, written best first in Moses' n-best "
        "format",
    )
    add(
        "--alignment",
        action="store_true",
        help="append ||| and the word alignment in Pharaoh format to each translation",
    )
    add(
        "--alignment_layer",
        type=cli.int_range(0),
        help="decoder layer, counted from 0, whose attention gives the alignment "
        "(default: the mean of the last two)",
    )
    add(
        "--xla",
        action=argparse.BooleanOptionalAction,
        help="compile the search for batches of one to four sentences (in int8, one), "
        "once per 32 subwords of length (default: only on a CPU, for a file with "
        f"--batch_size 1 and at least {LINES_THAT_PAY['float32']:,} lines, or "
        f"{LINES_THAT_PAY['int8']:,} in int8; on a terminal in the background, after "
        "some sentences of a length)",
    )
    add(
        "--tensor2tensor_rules",
        action="store_true",
        help="use exactly the length limit, stopping rule and scores of tensor2tensor; "
        "a translation then depends on its batch",
    )
    add("--sampling", action="store_true", help="sample instead of using beam search")
    add(
        "--temperature",
        type=cli.float_range(0.001, 1000),
        help="softmax temperature; below 1 sharpens the distribution (default: 1)",
    )
    add(
        "--top_k",
        type=cli.int_range(1),
        help="sample only from the K most likely tokens (default: all)",
    )
    add(
        "--top_p",
        type=cli.fraction,
        help="sample only from the smallest set of tokens with this total probability "
        "(default: 1)",
    )
    add("--seed", type=cli.int_range(0), help="random seed of --sampling (default: 0)")


def read_options(args: Any, hparams: HParams) -> TranslationOptions:
    """Returns the options that the flags set.

    Raises:
        UserError: The flags cannot be combined or do not suit the model, or the file of
            terms or a regular expression is invalid.
    """
    from t2t_repro.decoding.config import Sampling
    from t2t_repro.texts.placeholders import Placeholders
    from t2t_repro.texts.terms import read_terms
    from t2t_repro.translation.options import TranslationOptions, spell_in_commands

    _check_dependent_flags(args)
    sampling = placeholders = None
    if args.sampling:
        settings = {name: getattr(args, name) for name in _SAMPLING_FLAGS}
        sampling = Sampling(**{k: v for k, v in settings.items() if v is not None})
    if args.placeholders:
        placeholders = Placeholders(args.placeholders, "--placeholders")
    options = TranslationOptions(
        sampling=sampling,
        placeholders=placeholders,
        terms=None if args.terms is None else {},
        prefixes=args.prefix_file is not None,
        **{name: getattr(args, name) for name in _OPTIONS},
    )
    try:
        options.check(hparams, spell_in_commands)
    except ValueError as error:
        raise UserError(str(error)) from None
    if args.terms is not None:
        return replace(options, terms=read_terms(Path(args.terms)))
    return options


def _check_dependent_flags(args: Any) -> None:
    """Rejects flags without effect, because another flag is missing."""
    if not args.sampling:
        for name in _SAMPLING_FLAGS:
            if getattr(args, name) is not None:
                raise UserError(f"--{name} needs --sampling")
    if args.alignment_layer is not None and not args.alignment:
        raise UserError("--alignment_layer needs --alignment")
