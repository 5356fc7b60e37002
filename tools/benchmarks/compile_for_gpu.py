"""Compiles a training step for GPUs that are not there, and bounds its time.

    python tools/benchmarks/compile_for_gpu.py [--cases big/12480/H100,...]
        [--environment FOLDER]

Forward and backward of one part in bfloat16, loss and dropout included, are lowered by
TensorFlow as under `--xla`, and compiled by the XLA of JAX, which needs no GPU
for it, in its own environment. Printed are kernels, memory, bytes, operations and
the least time of all (`gpu/roofline.py`). Exit status 1: a case is beyond its budget.
Each case takes a minute; Ctrl-C prints those that are done.
"""

from __future__ import annotations

import sys
import tempfile
from argparse import ArgumentTypeError
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from environments import make_environment
from flags import several

from benchmarks import report
from benchmarks.gpu import roofline
from benchmarks.gpu.chips import CHIPS, Chip
from benchmarks.in_turn import Process, peer, peer_versions
from benchmarks.report import Result, say
from t2t_repro import hparams
from t2t_repro.command_line import cli

EXIT_BEYOND_BUDGET = 1
PRECISION = "bfloat16"
LENGTH = 30
"""Positions of a sentence on each side: the mean of WMT's in subwords."""

# The second without what JAX would have them install: 4 GB that only a GPU needs.
JAX = "0.10.2"
INSTALLS = (
    [f"jax=={JAX}"],
    [
        "--no-deps",
        f"jax-cuda12-plugin=={JAX}",
        f"jax-cuda12-pjrt=={JAX}",
        "nvidia-cuda-nvcc-cu12==12.9.86",
    ],
)

COPIES = 4
"""Of all weights, float32, that an update needs besides weights and gradients:
Adam's moments, the gradients' sum over parts, and the exchange with other devices."""

MILLISECONDS = {"big/12480/H100": 49.0}
GIGABYTES = {"big/12480": 40.0, "big/24960": 80.0}
"""The budgets: expected time of a case, and memory on any chip."""


class Case(NamedTuple):
    """One step on one chip."""

    size: str
    positions: int
    chip: str

    @property
    def program(self) -> str:
        """The part of the name that all chips share."""
        return f"{self.size}/{self.positions}"

    def __str__(self) -> str:
        """Writes it as the flag is given."""
        return f"{self.program}/{self.chip}"


def case(text: str) -> Case:
    """Reads SIZE/POSITIONS/CHIP."""
    size, _, rest = text.partition("/")
    positions, _, chip = rest.partition("/")
    if size not in hparams.names() or chip not in CHIPS or not positions.isdecimal():
        raise ArgumentTypeError(
            f"must be SIZE/POSITIONS/CHIP with a chip of {', '.join(CHIPS)}, not "
            f"{text!r}"
        )
    if int(positions) == 0 or int(positions) % LENGTH:
        raise ArgumentTypeError(f"positions must be a multiple of {LENGTH}")
    return Case(size, int(positions), chip)


# Multiples of eight rows.
CASES = ",".join(
    f"{size}/{positions}/{chip}"
    for size in ("base", "big")
    for positions in (3600, 12480, 24960)
    for chip in CHIPS
)


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, compiles case by case and prints the figures."""
    parser = report.parser(
        "Compiles a training step for GPUs that are not there, and bounds its time."
    )
    parser.add_argument(
        "--cases",
        type=several(case),
        default=CASES,
        help="SIZE/POSITIONS/CHIP, with commas between; positions of each side",
    )
    kept = "folder for JAX, kept for the next time (default: a temporary one)"
    parser.add_argument("--environment", help=kept)
    args = parser.parse_args(argv)
    cli.start_models(args.verbose, device="GPU")
    with tempfile.TemporaryDirectory() as temporary:
        say("making an environment with JAX ...")
        folder = Path(args.environment or f"{temporary}/environment")
        python = make_environment(folder, *INSTALLS)
        with report.reported(args, [_versions(python)]) as result:
            table: Result = {}
            result["tables"][f"micro-batches of {LENGTH} positions a side"] = table
            _compile(args.cases, python, Path(temporary), table)
    if beyond := [line for each in table for line in beyond_budget(each, table[each])]:
        say("beyond the budget: " + "; ".join(beyond))
        sys.exit(EXIT_BEYOND_BUDGET)


def _compile(cases: Sequence[Case], python: str, folder: Path, table: Result) -> None:
    """Compiles all cases; `table` gets a row for each."""
    from benchmarks.gpu.lowering import lowered

    for each in cases:
        program = folder / each.program.replace("/", "_")
        if not program.exists():
            say(f"{each.program}: TensorFlow lowers it ...")
            rows = each.positions // LENGTH
            program.write_bytes(lowered(each.size, rows, LENGTH, PRECISION))
        say(f"{each}: XLA compiles it ...")
        chip = CHIPS[each.chip]
        request = {"program": str(program), "chip": chip.description()}
        # A new process, whose memory is freed.
        compiler = peer("XLA", python, "compile_hlo.py")
        with Process(compiler, folder) as process:
            answer = process.ask(request)
        table[str(each)] = summary(each, answer, chip)


def summary(case: Case, answer: Result, chip: Chip) -> Result:
    """Returns the row of a compiled case; docs/speed.md explains its figures."""
    kernels = roofline.kernels(answer["compiled"])
    weights, gradients = answer["arguments"], answer["results"]
    memory = answer["temporaries"] + weights + gradients + COPIES * weights
    expected = sum(kernel.expected_seconds(chip) for kernel in kernels)
    return {
        "kernels": len(kernels),
        "temporaries (GB)": answer["temporaries"] / 1e9,
        "memory (GB)": memory / 1e9,
        "moved (GB)": sum(kernel.moved for kernel in kernels) / 1e9,
        "TFLOP": sum(kernel.operations for kernel in kernels) / 1e12,
        "compiled (s)": answer["compile_seconds"],
        "least (ms)": sum(kernel.least_seconds(chip) for kernel in kernels) * 1e3,
        "expected (ms)": expected * 1e3,
        report.SPEED: case.positions / expected,
    }


def beyond_budget(name: str, row: Result) -> list[str]:
    """Returns a line for each figure of a case that exceeds its budget."""
    budgets = {
        "expected (ms)": MILLISECONDS.get(name),
        "memory (GB)": GIGABYTES.get(name.rpartition("/")[0]),
    }
    return [
        f"{name}: {figure} {row[figure]:.1f}, more than {allowed:.1f}"
        for figure, allowed in budgets.items()
        if allowed and row[figure] > allowed
    ]


def _versions(python: str) -> str:
    packages = ("jax", "jaxlib", "jax-cuda12-plugin", "nvidia-cuda-nvcc-cu12")
    theirs = peer_versions(python, "--environment", *packages)
    import tensorflow as tf

    return f"TensorFlow {tf.__version__}; {theirs}"


if __name__ == "__main__":
    cli.run(main)
