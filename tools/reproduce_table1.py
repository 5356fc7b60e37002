"""Measures the quantities of the paper's table 1: cost and path length of layers.

    python tools/reproduce_table1.py --output_dir table1

Writes table1.json, table1.md, table1.png and table1.svg. They have, next to the
paper's values, the time of self-attention, recurrent, convolutional and restricted
self-attention layers over n (positions) and d (channels), the sequential operations
counted in the graph, and path lengths derived from gradients.
"""

from __future__ import annotations

import json
import platform
from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.report import markdown, say
from figures import style
from flags import REQUIRED, parser, several

from t2t_repro.command_line import cli
from t2t_repro.system.atomic_file import write_text_atomically
from t2t_repro.system.errors import UserError

LENGTHS = "16,32,64,128,256,512,1024,2048"
WIDTHS = "64,128,256,512"
PATH_LENGTHS = (4, 8, 16, 32, 64, 128)
PATH_SIZES = {"d": 8, "radius": 2}
"""Path lengths do not depend on d; a small radius shows their growth at smaller n."""

_CROSSOVERS = {
    "operations, recurrent": "n where self-attention has as many operations as a "
    "recurrent layer",
    "seconds, recurrent": "n where it takes as long as a recurrent layer",
    "seconds, convolutional": "a convolutional layer",
    "seconds, restricted": "a restricted layer",
}


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, measures the layers, and writes and prints the table."""
    sizes = several(cli.int_range(2))
    args = parser(
        __doc__,
        ("output_dir", cli.path, REQUIRED, "folder for the table and the figure"),
        ("lengths", sizes, LENGTHS, "values of n (positions)"),
        ("widths", sizes, WIDTHS, "values of d (channels), multiples of 8"),
        ("radius", cli.int_range(1), 8, "radius of restricted self-attention"),
        ("kernel", cli.int_range(2), 3, "kernel size k of convolutions"),
        ("repeats", cli.int_range(1), 7, "timed runs per layer"),
    ).parse_args(argv)
    for flag in ("lengths", "widths"):
        values = getattr(args, flag)
        if not values or values != sorted(set(values)):
            raise UserError(f"--{flag} must be in ascending order")
    if len(args.lengths) < 2:
        raise UserError("--lengths requires at least two lengths")
    if any(width % 8 for width in args.widths):
        raise UserError("--widths must be multiples of 8, the number of heads")
    folder = style.check_folder(args.output_dir)
    cli.start_tensorflow(args.verbose)
    import tensorflow as tf

    with suppress(RuntimeError):  # TensorFlow is already initialized.
        tf.config.threading.set_intra_op_parallelism_threads(1)
    result = measure(args)
    result["machine"] = f"{platform.machine()}, TensorFlow {tf.__version__}, one core"
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder, result)
    cli.print_result(format_markdown(result), result, args.json)


def measure(args: Namespace) -> dict[str, Any]:
    """Measures all kinds of layers with the sizes in the flags.

    Returns:
        Dictionary with ``layers`` (kind -> d -> lists of ``operations`` and ``seconds``
        over n), ``sequential`` and ``paths`` (kind -> n -> value), ``crossovers``
        (d -> name -> n), and ``doubled`` (kind -> growth factors of the time when n or
        d doubles, at the largest sizes).
    """
    from table1.dependency import path_length, sequential_operations
    from table1.layers import KINDS, WITH_PROJECTIONS, Sizes, multiply_adds
    from table1.timing import seconds

    lengths, widths, kinds = args.lengths, args.widths, [*KINDS, WITH_PROJECTIONS]
    layers: dict[str, Any] = {kind: {} for kind in kinds}
    for d, kind in product(widths, kinds):
        sizes = Sizes(d, args.kernel, args.radius)
        operations = [multiply_adds(kind, n, sizes) for n in lengths]
        times = [seconds(kind, n, sizes, args.repeats) for n in lengths]
        layers[kind][d] = {"operations": operations, "seconds": times}
        text = ", ".join(f"{1e3 * value:.2f}" for value in times)
        say(f"d = {d}, {kind}: {text} ms")
    small = Sizes(**PATH_SIZES, kernel=args.kernel)
    paths = {
        kind: {n: path_length(kind, n, small) for n in PATH_LENGTHS} for kind in KINDS
    }
    return {
        "lengths": lengths,
        "widths": widths,
        "kernel": args.kernel,
        "neighbourhood": 2 * args.radius + 1,
        "path_neighbourhood": small.window,
        "layers": layers,
        "sequential": {
            kind: {n: sequential_operations(kind, n, small) for n in PATH_LENGTHS}
            for kind in KINDS
        },
        "paths": paths,
        "crossovers": _crossovers(lengths, widths, layers),
        "doubled": _compute_growth(lengths, widths, layers),
    }


def _crossovers(
    lengths: Sequence[int], widths: Sequence[int], layers: dict[str, Any]
) -> dict[int, dict[str, float | None]]:
    """Returns the n above which self-attention costs more than each other layer."""
    from table1.timing import crossover

    own = layers["self-attention"]
    return {
        d: {
            f"{cost}, {other}": crossover(lengths, own[d][cost], layers[other][d][cost])
            for cost in ("operations", "seconds")
            for other in ("recurrent", "convolutional", "restricted")
        }
        for d in widths
    }


def _compute_growth(
    lengths: Sequence[int], widths: Sequence[int], layers: dict[str, Any]
) -> dict[str, dict[str, float | None]]:
    """Returns the growth factors of the times when n or d doubles."""
    from table1.timing import compute_growth

    factors = {}
    for kind, by_width in layers.items():
        last = [by_width[d]["seconds"][-1] for d in widths]
        factors[kind] = {
            "n": compute_growth(lengths, by_width[widths[-1]]["seconds"]),
            "d": compute_growth(widths, last) if len(widths) > 1 else None,
        }
    return factors


def format_markdown(result: dict[str, Any]) -> str:
    """Formats the result of `measure` as Markdown tables."""
    from table1.layers import KINDS

    d, n = result["widths"][-1], max(PATH_LENGTHS)
    longest = result["lengths"][-1]
    rows = {}
    for kind, row in KINDS.items():
        last = 1e3 * result["layers"][kind][d]["seconds"][-1]
        cells = rows[row.name] = {"paper: operations": row.complexity}
        cells[f"ms at n = {longest:,}, d = {d}"] = f"{last:.2f}"
        for (size, time), paper in zip(
            result["doubled"][kind].items(), row.doubled, strict=True
        ):
            text = "" if time is None else f"{time:.2f} times ({paper})"
            cells[f"time when {size} doubles (paper)"] = text
        cells["paper: sequential operations"] = row.sequential
        cells[f"operations, n = {n}"] = str(result["sequential"][kind][n])
        cells["paper: path length"] = row.path
        cells[f"path length, n = {n}"] = str(result["paths"][kind][n])
    none = f"none up to {longest:,}"
    crossovers = {
        f"d = {width}": {
            title: f"{crossed[key]:.0f}" if crossed[key] else none
            for key, title in _CROSSOVERS.items()
        }
        for width, crossed in result["crossovers"].items()
    }
    return "\n".join([*markdown(rows), "", *markdown(crossovers)])


def _write(folder: Path, result: dict[str, Any]) -> None:
    """Writes the result as JSON, table and figure."""
    from table1.drawing import draw

    write_text_atomically(folder / "table1.json", json.dumps(result, indent=1) + "\n")
    write_text_atomically(folder / "table1.md", format_markdown(result) + "\n")
    d = result["widths"][-1]
    with style.use_style():
        layers = {kind: each[d] for kind, each in result["layers"].items()}
        figure = draw(result["lengths"], d, layers, result["paths"])
        style.save(figure, folder, "table1")


if __name__ == "__main__":
    cli.run(main)
