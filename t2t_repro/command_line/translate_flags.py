"""Additional flags of `translate`, and the rules for combining them."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from t2t_repro.command_line import cli
from t2t_repro.hparams.fields import MOST_EXTRA_LENGTH
from t2t_repro.system.errors import UserError

if TYPE_CHECKING:
    from t2t_repro.hparams import HParams

_OTHER_SEARCHES = ("sampling", "tensor2tensor_rules", "prefix_file")
UNDIVIDED = ("nbest", "alignment", "prefix_file", "tensor2tensor_rules")
"""Flags with which a line is not divided into sentences, whatever its length."""
# The flags with which each flag cannot be combined.
_EXCLUDED = {
    "sampling": ("beam_size", "alpha", "tensor2tensor_rules"),
    "tensor2tensor_rules": ("min_length", "no_repeat_ngram", "prefix_file"),
    "alignment": ("nbest",),
    "nbest": ("scores",),
    "split_sentences": UNDIVIDED,
    "xla": _OTHER_SEARCHES,
    "terms": (*_OTHER_SEARCHES, "min_length", "no_repeat_ngram", "xla"),
    "placeholders": ("prefix_file",),
    "unknown": ("tensor2tensor_rules",),
}
LINES_THAT_PAY = {"float32": 500, "int8": 3_000}
"""Minimum number of lines for which compiling the search saves time, by precision.

A file has about three lengths to compile, in 3 s of processor time each. For a line of
26 subwords, base then takes 40 (float32) or 9 ms (int8) less on a processor with
AVX512-VNNI, and more on others."""

_SAMPLING_FLAGS = ("temperature", "top_k", "top_p", "seed")


def add_extra_length(parser: argparse.ArgumentParser, output: str) -> None:
    """Adds the flag of the length limit; `output` is the noun in its help text."""
    parser.add_argument(
        "--extra_length",
        type=cli.at_least(0, MOST_EXTRA_LENGTH),
        help=f"subwords by which {output} may be longer than its input (default: the "
        "model's)",
    )


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Adds the additional flags of `translate`."""
    add_extra_length(parser, "a translation")
    add = parser.add_argument
    add(
        "--min_length",
        type=cli.at_least(1),
        help="minimum number of subwords of a translation, EOS included",
    )
    add(
        "--no_repeat_ngram",
        type=cli.at_least(1),
        help="length in subwords of the sequences that may not occur twice in a "
        "translation",
    )
    add(
        "--prefix_file",
        help="file with one prefix per input line; each translation begins with its "
        "prefix, which may be empty",
    )
    add(
        "--terms",
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
        type=cli.at_least(1),
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
        type=cli.at_least(0),
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
        type=cli.between(0.001, 1000),
        help="softmax temperature; below 1 sharpens the distribution (default: 1)",
    )
    add(
        "--top_k",
        type=cli.at_least(1),
        help="sample only from the K most likely tokens (default: all)",
    )
    add(
        "--top_p",
        type=cli.share,
        help="sample only from the smallest set of tokens with this total probability "
        "(default: 1)",
    )
    add("--seed", type=cli.at_least(0), help="random seed of --sampling (default: 0)")


def search_changes(args: Any, hparams: HParams) -> dict[str, Any]:
    """Returns the `DecodingConfig` fields that the flags set; None keeps the model's.

    Raises:
        UserError: The flags cannot be combined, or do not suit the model.
    """
    from t2t_repro import fast
    from t2t_repro.decoding.algorithms import algorithm_class
    from t2t_repro.decoding.config import Sampling

    _check(args)
    if args.xla and not fast.is_installed():
        raise UserError(
            "--xla compiles the optimized search, which --no-fast and "
            f"{fast.FAST}=0 disable; omit one of them"
        )
    sampling = None
    if args.sampling:
        settings = {name: getattr(args, name) for name in _SAMPLING_FLAGS}
        sampling = Sampling(**{k: v for k, v in settings.items() if v is not None})
    try:
        algorithm_class(hparams.search, args.tensor2tensor_rules)
    except ValueError:
        raise UserError(
            f"--tensor2tensor_rules: the model uses {hparams.search}'s search (search "
            "in its hparams.yaml); omit the flag"
        ) from None
    beam_size = args.beam_size or hparams.beam_size
    if sampling is None and (args.nbest or 1) > beam_size:
        raise UserError(
            f"--nbest {args.nbest} exceeds the beam size {beam_size}; give --beam_size "
            f"{args.nbest} or more"
        )
    names = ("beam_size", "alpha", "extra_length", "min_length", "no_repeat_ngram")
    return {name: getattr(args, name) for name in names} | {
        "nbest": args.nbest,
        "sampling": sampling,
        "unknown": args.unknown,
        "tensor2tensor_rules": args.tensor2tensor_rules,
    }


def compile_after(args: Any, lines: int | None) -> float | None:
    """Returns the time after which XLA compiles a search, as for `CompiledSearch`.

    Without --xla or --no-xla the search is compiled where this is faster. A message is
    printed if all lines of a file use it.

    Args:
        args: Flags of the command.
        lines: Number of lines of the input; None if unknown.

    Returns:
        The time in seconds; None: XLA does not compile the search.
    """
    import tensorflow as tf

    from t2t_repro import fast
    from t2t_repro.fast.compiled_search import SECONDS_THAT_PAY

    if args.xla is not None:
        return 0 if args.xla else None
    supported = (
        args.precision in LINES_THAT_PAY
        and not any(getattr(args, name) for name in _EXCLUDED["xla"])
        and args.terms is None
        and fast.is_installed()
        and not tf.config.list_physical_devices("GPU")
    )
    if not supported:
        return None
    if args.input_file == "-" and sys.stdin.isatty():
        return SECONDS_THAT_PAY
    if args.batch_size > 1 or (lines or 0) < LINES_THAT_PAY[args.precision]:
        return None
    cli.log(
        f"compiling the search for {lines:,} lines in batches of one (disable with "
        "--no-xla)"
    )
    return 0


def _check(args: Any) -> None:
    """Rejects flags that cannot be combined, and flags without effect."""
    for name, others in _EXCLUDED.items():
        for other in others:
            if getattr(args, name) and getattr(args, other) not in (None, False):
                raise UserError(
                    f"--{name} and --{other} cannot be combined; give one of them"
                )
    if not args.sampling:
        for name in _SAMPLING_FLAGS:
            if getattr(args, name) is not None:
                raise UserError(f"--{name} needs --sampling")
    if args.alignment_layer is not None and not args.alignment:
        raise UserError("--alignment_layer needs --alignment")
