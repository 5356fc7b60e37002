"""Builds the vocabulary and the encoded shards of a problem.

Existing files are checked, and rebuilt if they are damaged or were made from other
data. Training does the same.
"""

import functools
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from t2t_repro import hparams, problems
from t2t_repro.command_line import cli
from t2t_repro.command_line.data_flags import add_data_flags
from t2t_repro.command_line.part_flags import add_part_flags, parse_part
from t2t_repro.system.cores import usable_cores
from t2t_repro.system.errors import format_count


def _parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser(__doc__)
    add_data_flags(parser, problems.names(), required=True)
    parser.add_argument(
        "--hparams",
        type=cli.path,
        help="hyper-parameter set with the vocabulary's type and size (default: the "
        "problem's set, or base)",
    )
    parser.add_argument(
        "--workers",
        type=cli.int_range(1, 1024),
        default=usable_cores(),
        help="number of processes that encode; the files do not depend on it",
    )
    add_part_flags(parser, "training shards to encode")
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, prepares the data and prints the numbers of pairs."""
    args = _parser().parse_args(argv)
    part = parse_part(args)
    problem = problems.create(
        args.problem, args.data_dir, args.source_lang, args.target_lang
    )
    settings = hparams.load(args.hparams or default_set(problem.name), "--hparams")
    cli.start_tensorflow(args.verbose)
    from t2t_repro.data.prepared_data import manifests, prepare
    from t2t_repro.data.split_encoding import encode_part

    stream = sys.stderr if args.json else sys.stdout
    say = functools.partial(print, file=stream, flush=True)
    data_dir = Path(args.shard_dir or args.data_dir)
    vocab_file = Path(args.vocab_file) if args.vocab_file else None
    if part is not None:
        shards = encode_part(
            problem, settings, data_dir, say, vocab_file, part, args.workers
        )
        cli.print_result(
            f"--shard_index {part[0]} is done; {format_count(shards, 'shard')} of all "
            "parts are ready: after the last part, run the command without both flags",
            {"part": part, "shards": shards},
            args.json,
        )
        return
    prepared = prepare(
        problem, settings, data_dir, say, vocab_file, workers=args.workers
    )
    splits = {
        split: asdict(manifest)
        for split, manifest in manifests(prepared.directory).items()
    }
    val = 0 if prepared.val is None else len(prepared.val)
    cli.print_result(
        f"{prepared.directory} is ready: vocabulary of "
        f"{prepared.tokenizer.vocab_size:,}, {len(prepared.train):,} training pairs, "
        f"{val:,} validation pairs",
        {"directory": str(prepared.directory), "splits": splits},
        args.json,
    )


def default_set(problem: str) -> str:
    """Returns the default hyper-parameter set of a problem.

    This is the first set that names the problem, starting with "base". Without such a
    set, and for the problem "files", it is "base".
    """
    if problem == "files":
        return "base"
    names = ["base", *hparams.names()]
    return next(
        (name for name in names if hparams.load(name).problem == problem), "base"
    )


if __name__ == "__main__":
    cli.run(main)
