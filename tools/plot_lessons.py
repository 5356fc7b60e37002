"""Draws figures of the paper's design choices and prints the numbers in them.

    python tools/plot_lessons.py --output_dir figures
    python tools/plot_lessons.py --only heads --model_dir M \
        --source_file test.en --reference_file test.de --output_dir figures
    python tools/plot_lessons.py --only norm_order --data_dir data --output_dir figures

The first command draws six figures, as PNG and SVG, in seconds. `heads` and
`norm_order` take longer and must be selected. The figures require Matplotlib (`pip
install ".[figures]"`).
"""

import importlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import say
from figures import style
from flags import REQUIRED, choice, parser

from t2t_repro.command_line import cli
from t2t_repro.system.atomic_file import iterate_pairs
from t2t_repro.system.errors import UserError

QUICK = ("positions", "order", "scaling", "schedule", "masks", "norms")
FIGURES = (*QUICK, "heads", "norm_order")


HEADS = ("model_dir", "source_file", "reference_file")


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, draws the figures and prints their numbers."""
    only = f"{', '.join(FIGURES)} (default: the first {len(QUICK)})"
    args = parser(
        __doc__,
        ("output_dir", cli.path, REQUIRED, "folder for the figures"),
        ("only", choice(FIGURES), None, only),
        ("model_dir", cli.path, None, "heads: model directory of a trained model"),
        ("checkpoint", cli.path, "best", "heads: see t2t_repro.translate"),
        ("source_file", cli.path, None, "heads: file with one sentence per line"),
        (
            "reference_file",
            cli.path,
            None,
            "heads: file with the reference translations",
        ),
        ("lines", cli.int_range(1), 200, "heads: number of sentences to translate"),
        ("data_dir", cli.path, "data", "norm_order: folder for the prepared corpus"),
        ("steps", cli.int_range(20), 400, "norm_order: steps of each run"),
        ("seed", cli.int_range(0), 1, "norm_order: random seed of the runs"),
    ).parse_args(argv)
    folder = style.check_folder(args.output_dir)
    arguments: dict[str, tuple[Any, ...]] = {}
    if args.only == "heads":
        for name in HEADS:
            if getattr(args, name) is None:
                raise UserError(f"--only heads requires --{name}")
        pairs = [*iterate_pairs(args.source_file, args.reference_file)][: args.lines]
        arguments["heads"] = (Path(args.model_dir), args.checkpoint, pairs, say)
    arguments["norm_order"] = (Path(args.data_dir), args.steps, args.seed, say)
    cli.start_tensorflow(args.verbose)

    result: dict[str, Any] = {}
    for name in [args.only] if args.only else QUICK:
        with style.use_style():
            draw = importlib.import_module(f"figures.{name}").draw
            figure, facts = draw(*arguments.get(name, ()))
            folder.mkdir(parents=True, exist_ok=True)
            files = style.save(figure, folder, name)
        result[name] = {"files": [str(path) for path in files], "numbers": facts}
    lines = [
        f"{name}: {' '.join(each['files'])}\n  {json.dumps(each['numbers'])}"
        for name, each in result.items()
    ]
    cli.print_result("\n".join(lines), result, args.json)


if __name__ == "__main__":
    cli.run(main)
