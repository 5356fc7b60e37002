"""Measures Table 1 of the paper: what a layer costs, and how far a signal travels.

    python tools/reproduce_table1.py --output_dir table1

writes table1.json, table1.md and table1.png/.svg: the time of self-attention,
recurrent, convolutional and restricted self-attention layers over n (positions) and d
(channels), their sequential operations counted in the graph, and their path lengths
found by gradients, beside what the paper's table says.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import say
from figures import style
from flags import several

from t2t_repro.command_line import cli
from t2t_repro.system.atomic_file import write_text_atomically
from t2t_repro.system.errors import UserError

LENGTHS = "16,32,64,128,256,512,1024,2048"
WIDTHS = "64,128,256,512"
PATH_LENGTHS = (4, 8, 16, 32, 64, 128)
PATH_SIZES = {"d": 8, "radius": 2}
"""Path lengths do not depend on d; a smaller radius shows sooner."""

_CROSSED = (
    *("operations, recurrent", "seconds, recurrent"),
    *("seconds, convolutional", "seconds, restricted"),
)


def _parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser(
        "Measures time per layer, sequential operations and path lengths of the four "
        "kinds of layers of the paper's Table 1."
    )
    add, sizes, count = parser.add_argument, several(cli.at_least(2)), cli.at_least(1)
    add("--output_dir", required=True, help="where the table goes")
    add("--lengths", type=sizes, default=LENGTHS, help="n, with commas between")
    add("--widths", type=sizes, default=WIDTHS, help="d, multiples of 8")
    radius = "of restricted self-attention: r = 2 radius + 1"
    add("--radius", type=count, default=8, help=radius)
    add("--kernel", type=cli.at_least(2), default=3, help="k of the convolutions")
    add("--repeats", type=count, default=7, help="timed runs of each layer")
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, measures, writes and prints."""
    args = _parser().parse_args(argv)
    for flag in ("lengths", "widths"):
        values = getattr(args, flag)
        if not values or values != sorted(set(values)):
            raise UserError(f"--{flag} must ascend")
    if len(args.lengths) < 2:
        raise UserError("--lengths needs two lengths or more to compare")
    if any(width % 8 for width in args.widths):
        raise UserError("--widths must be multiples of 8 (heads)")
    folder = Path(args.output_dir)
    if folder.exists() and not folder.is_dir():
        raise UserError(f"--output_dir {folder} is a file; name a folder")
    style.require_matplotlib()
    cli.start_tensorflow(args.verbose)
    import tensorflow as tf

    from t2t_repro.translation.parallel_batches import give_each_batch_a_core

    give_each_batch_a_core()
    found = measure(args.lengths, args.widths, args.kernel, args.radius, args.repeats)
    found["machine"] = f"{platform.machine()}, TensorFlow {tf.__version__}, one core"
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder, found)
    cli.print_result(as_markdown(found), found, args.json)


def measure(
    lengths: Sequence[int],
    widths: Sequence[int],
    kernel: int,
    radius: int,
    repeats: int,
) -> dict[str, Any]:
    """Measures all layers over `lengths` n, ascending, and `widths` d, multiples of 8.

    Returns ``layers``: by kind, d and n the ``operations`` (multiplications) and the
    ``seconds``; ``sequential`` and ``paths`` by kind and n; ``crossovers`` by d;
    ``doubled`` by kind: what the time is multiplied by when n, and when d, doubles, at
    the largest sizes.
    """
    from table1.dependency import (
        contiguous_path,
        path_length,
        sequential_operations,
    )
    from table1.layers import KINDS, WITH_PROJECTIONS, Sizes, multiply_adds
    from table1.timing import seconds

    kinds = [*KINDS, WITH_PROJECTIONS]
    layers: dict[str, Any] = {kind: {} for kind in kinds}
    for d in widths:
        sizes = Sizes(d, kernel, radius)
        for kind in kinds:
            took = [seconds(kind, n, sizes, repeats) for n in lengths]
            layers[kind][d] = {
                "operations": [multiply_adds(kind, n, sizes) for n in lengths],
                "seconds": took,
            }
            told = ", ".join(f"{1e3 * value:.2f}" for value in took)
            say(f"d = {d}, {kind}: {told} ms")
    small = Sizes(**PATH_SIZES, kernel=kernel)
    paths = {
        kind: {n: path_length(kind, n, small) for n in PATH_LENGTHS} for kind in KINDS
    }
    paths["convolutional, not dilated"] = {
        n: contiguous_path(n, small) for n in PATH_LENGTHS
    }
    return {
        "lengths": list(lengths),
        "widths": list(widths),
        "kernel": kernel,
        "neighbourhood": 2 * radius + 1,
        "path_neighbourhood": small.neighbourhood,
        "layers": layers,
        "sequential": {
            kind: {n: sequential_operations(kind, n, small) for n in PATH_LENGTHS}
            for kind in KINDS
        },
        "paths": paths,
        "crossovers": _crossovers(lengths, widths, layers),
        "doubled": _doubled(lengths, widths, layers),
    }


def _crossovers(
    lengths: Sequence[int], widths: Sequence[int], layers: dict[str, Any]
) -> dict[int, dict[str, float | None]]:
    """Finds from which n on self-attention costs more than each other layer."""
    from table1.timing import crossover

    found: dict[int, dict[str, float | None]] = {}
    for d in widths:
        own = layers["self-attention"][d]
        found[d] = {
            f"{cost}, {other}": crossover(lengths, own[cost], layers[other][d][cost])
            for cost in ("operations", "seconds")
            for other in ("recurrent", "convolutional", "restricted")
        }
    return found


def _doubled(
    lengths: Sequence[int], widths: Sequence[int], layers: dict[str, Any]
) -> dict[str, dict[str, float | None]]:
    """Compares times at the largest sizes with those at half of them."""
    from table1.timing import doubled

    found = {}
    for kind, by_width in layers.items():
        last = [by_width[d]["seconds"][-1] for d in widths]
        found[kind] = {
            "n": doubled(lengths, by_width[widths[-1]]["seconds"]),
            "d": doubled(widths, last) if len(widths) > 1 else None,
        }
    return found


def as_markdown(found: dict[str, Any]) -> str:
    """Writes what `measure` returned as Markdown tables."""
    from table1.layers import KINDS

    d, n = found["widths"][-1], max(PATH_LENGTHS)
    longest = found["lengths"][-1]
    rows = [
        f"| layer | paper: operations | ms at n = {longest:,}, d = {d} | time when n "
        "doubles (paper) | when d doubles (paper) | paper: sequential | counted, n = "
        f"{n} | paper: path | found, n = {n} |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for kind, row in KINDS.items():
        times = [
            "" if time is None else f"{time:.2f} times ({paper})"
            for time, paper in zip(
                found["doubled"][kind].values(), row.doubled, strict=True
            )
        ]
        last = 1e3 * found["layers"][kind][d]["seconds"][-1]
        rows.append(
            f"| {row.name} | {row.complexity} | {last:.2f} | {times[0]} | {times[1]} | "
            f"{row.sequential} | {found['sequential'][kind][n]} | {row.path} | "
            f"{found['paths'][kind][n]} |"
        )
    rows += [
        "",
        "| d | n where self-attention needs as many operations as a recurrent layer | "
        "as much time as a recurrent layer | as a convolutional one | as a restricted "
        "one |",
        "|---|---|---|---|---|",
    ]
    for width, crossed in found["crossovers"].items():
        cells = [
            f"none up to {longest:,}" if n is None else f"{n:.0f}"
            for n in map(crossed.get, _CROSSED)
        ]
        rows.append(f"| {width} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _write(folder: Path, found: dict[str, Any]) -> None:
    """Writes numbers, table and picture."""
    from table1.drawing import draw

    write_text_atomically(folder / "table1.json", json.dumps(found, indent=1) + "\n")
    write_text_atomically(folder / "table1.md", as_markdown(found) + "\n")
    d = found["widths"][-1]
    with style.styled():
        figure = draw(
            found["lengths"],
            d,
            {kind: each[d]["operations"] for kind, each in found["layers"].items()},
            {kind: each[d]["seconds"] for kind, each in found["layers"].items()},
            found["paths"],
        )
        style.save(figure, folder, "table1")


if __name__ == "__main__":
    cli.run(main)
