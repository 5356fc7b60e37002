"""The flags of `translate` beyond a plain search, and which go together."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from t2t_repro.command_line import cli
from t2t_repro.hparams.fields import MOST_EXTRA_LENGTH
from t2t_repro.system.errors import UserError

if TYPE_CHECKING:
    from t2t_repro.hparams import HParams

# What goes together with none of these.
_EXCLUDED = {
    "sampling": ("beam_size", "alpha", "tensor2tensor_rules"),
    "tensor2tensor_rules": ("min_length", "no_repeat_ngram", "prefix_file"),
    "alignment": ("nbest",),
    "nbest": ("scores",),
    "xla": ("sampling", "tensor2tensor_rules", "prefix_file"),
    "terms": (
        "sampling",
        "tensor2tensor_rules",
        "prefix_file",
        "min_length",
        "no_repeat_ngram",
        "xla",
    ),
}
LINES_THAT_PAY = 2000
"""Lines one at a time from which on compiling a narrow model's search pays."""

WIDEST_THAT_PAYS = 256
"""Up to this d_model it does: a step then takes as long as its operations are many.
That of a wide one reads its weights, compiled or not, and may be slower compiled."""

_OF_SAMPLING = ("temperature", "top_k", "top_p", "seed")


def add_extra_length(parser: argparse.ArgumentParser, output: str) -> None:
    """Adds the limit of an output's length; `output` names the output in the help."""
    parser.add_argument(
        "--extra_length",
        type=cli.at_least(0, MOST_EXTRA_LENGTH),
        help=f"subwords by which {output} may exceed its line (default: the model's)",
    )


def add(parser: argparse.ArgumentParser) -> None:
    """Adds the flags."""
    add_extra_length(parser, "a translation")
    parser.add_argument(
        "--min_length", type=cli.at_least(1), help="least number of subwords, with EOS"
    )
    parser.add_argument(
        "--no_repeat_ngram",
        type=cli.at_least(1),
        help="no sequence of this many subwords occurs twice in a translation",
    )
    parser.add_argument(
        "--prefix_file", help="prefixes of the translations, one per line; may be empty"
    )
    parser.add_argument(
        "--terms",
        help="lexical constraints: a source term, a tab and a target term per line",
    )
    parser.add_argument(
        "--nbest",
        type=cli.at_least(1),
        help="number of translations per line, best first, in Moses' n-best format",
    )
    parser.add_argument(
        "--alignment",
        action="store_true",
        help="write ||| and the word alignment (Pharaoh) after each translation",
    )
    parser.add_argument(
        "--alignment_layer",
        type=cli.at_least(0),
        help="decoder layer whose attention aligns, from 0 (default: the last but one)",
    )
    parser.add_argument(
        "--xla",
        action=argparse.BooleanOptionalAction,
        help="compile the search for single sentences, once per 16 subwords of length "
        "(default: on a CPU, in float32, for --batch_size 1, a d_model of at most "
        f"{WIDEST_THAT_PAYS} and {LINES_THAT_PAY:,} lines or more)",
    )
    parser.add_argument(
        "--tensor2tensor_rules",
        action="store_true",
        help="limit, stop and score exactly as tensor2tensor: a translation then "
        "depends on its batch",
    )
    parser.add_argument(
        "--sampling", action="store_true", help="sample instead of beam search"
    )
    parser.add_argument(
        "--temperature",
        type=cli.between(0.001, 1000),
        help="softmax temperature; below 1 sharpens the distribution (default: 1)",
    )
    parser.add_argument(
        "--top_k",
        type=cli.at_least(1),
        help="sample only from the K most likely tokens (default: all)",
    )
    parser.add_argument(
        "--top_p",
        type=cli.share,
        help="sample from the fewest tokens with this total probability (default: 1)",
    )
    parser.add_argument(
        "--seed", type=cli.at_least(0), help="seed of --sampling (default: 0)"
    )


def search_changes(args: Any, hparams: HParams) -> dict[str, Any]:
    """Returns `DecodingConfig` fields; None: the model's own."""
    from t2t_repro import fast
    from t2t_repro.decoding.algorithms import algorithm_class
    from t2t_repro.decoding.config import Sampling

    _check(args)
    if args.xla and not fast.is_installed():
        raise UserError(
            "--xla compiles the optimized search, which --no-fast and "
            f"{fast.FAST}=0 switch off; leave one of them out"
        )
    if args.xla and args.precision == "int8":
        raise UserError("--xla and --precision int8 exclude each other; XLA has none")
    sampling = None
    if args.sampling:
        chosen = {name: getattr(args, name) for name in _OF_SAMPLING}
        sampling = Sampling(**{k: v for k, v in chosen.items() if v is not None})
    try:
        algorithm_class(hparams.search, args.tensor2tensor_rules)
    except ValueError:
        raise UserError(
            f"--tensor2tensor_rules: the model searches as {hparams.search} does "
            "(search in its hparams.yaml); leave the flag out"
        ) from None
    beam_size = args.beam_size or hparams.beam_size
    if sampling is None and (args.nbest or 1) > beam_size:
        raise UserError(
            f"--nbest {args.nbest} is more than the beam holds; give --beam_size "
            f"{args.nbest} or more (it is {beam_size})"
        )
    plain = ("beam_size", "alpha", "extra_length", "min_length", "no_repeat_ngram")
    return {name: getattr(args, name) for name in plain} | {
        "nbest": args.nbest,
        "sampling": sampling,
        "tensor2tensor_rules": args.tensor2tensor_rules,
    }


def compiles_search(args: Any, lines: int | None, hparams: HParams) -> bool:
    """Returns whether XLA compiles the search: --xla, or what pays without the flag.

    It prints a line where the flag is not given and the search is compiled.

    Args:
        args: of the command.
        lines: of the input, where that is known.
        hparams: of the model.
    """
    import tensorflow as tf

    from t2t_repro import fast

    if args.xla is not None:
        return bool(args.xla)
    pays = (
        args.batch_size == 1
        and args.precision == "float32"
        and (lines or 0) >= LINES_THAT_PAY
        and hparams.d_model <= WIDEST_THAT_PAYS
        and not any(getattr(args, name) for name in _EXCLUDED["xla"])
        and args.terms is None
        and fast.is_installed()
        and not tf.config.list_physical_devices("GPU")
    )
    if pays:
        print(
            f"{lines:,} lines one at a time: their search is compiled (--no-xla: not)",
            file=sys.stderr,
            flush=True,
        )
    return pays


def _check(args: Any) -> None:
    """Refuses flags that exclude each other, and those that would do nothing."""
    for name, others in _EXCLUDED.items():
        for other in others:
            if getattr(args, name) and getattr(args, other) not in (None, False):
                raise UserError(
                    f"--{name} and --{other} exclude each other; give one of them"
                )
    if not args.sampling:
        for name in _OF_SAMPLING:
            if getattr(args, name) is not None:
                raise UserError(f"--{name} needs --sampling")
    if args.alignment_layer is not None and not args.alignment:
        raise UserError("--alignment_layer needs --alignment")
