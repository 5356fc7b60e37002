"""Flags of commands that several machines run, each on a part of the work."""

import argparse

from t2t_repro.command_line import cli
from t2t_repro.system.errors import UserError

_MOST = 100_000


def add_part_flags(parser: argparse.ArgumentParser, what: str) -> None:
    """Adds the flags of the part; `what` names what is divided."""
    parser.add_argument(
        "--shard_index",
        type=cli.int_range(0, _MOST - 1),
        help=f"part of the {what}, from 0 to --num_shards - 1 (default: all)",
    )
    parser.add_argument(
        "--num_shards",
        type=cli.int_range(1, _MOST),
        help="number of parts, for --shard_index",
    )


def parse_part(args: argparse.Namespace) -> tuple[int, int] | None:
    """Returns the index and the number of the parts; None for everything.

    Raises UserError if a flag is missing or the index is too large.
    """
    index, count = args.shard_index, args.num_shards
    if index is None and count is None:
        return None
    if index is None or count is None:
        raise UserError("--shard_index and --num_shards must be given together")
    if index >= count:
        raise UserError(
            f"--shard_index {index} is too large: with --num_shards {count}, it is at "
            f"most {count - 1}"
        )
    return index, count
