"""Builds the vocabulary and the encoded shards of a problem.

Existing files are checked, and rebuilt if they are damaged or were made from other
data. Training does the same.
"""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from t2t_repro import hparams, problems
from t2t_repro.command_line import cli
from t2t_repro.command_line.data_flags import add_data_flags


def _parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser(__doc__)
    add_data_flags(parser, problems.names(), required=True)
    parser.add_argument(
        "--hparams",
        type=cli.path,
        help="hyper-parameter set with the vocabulary's type and size (default: the "
        "problem's set, or base)",
    )
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, prepares the data and prints the numbers of pairs."""
    args = _parser().parse_args(argv)
    problem = problems.create(
        args.problem, args.data_dir, args.source_lang, args.target_lang
    )
    settings = hparams.load(args.hparams or default_set(problem.name), "--hparams")
    cli.start_tensorflow(args.verbose)
    from t2t_repro.data.prepared_data import manifests, prepare

    stream = sys.stderr if args.json else sys.stdout
    prepared = prepare(
        problem,
        settings,
        Path(args.data_dir),
        lambda line: print(line, file=stream, flush=True),
        vocab_file=Path(args.vocab_file) if args.vocab_file else None,
    )
    splits = {
        split: asdict(manifest)
        for split, manifest in manifests(prepared.directory).items()
    }
    cli.print_result(
        f"{prepared.directory} is ready: vocabulary of "
        f"{prepared.tokenizer.vocab_size:,}, {len(prepared.train):,} training pairs, "
        f"{len(prepared.val):,} validation pairs",
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
