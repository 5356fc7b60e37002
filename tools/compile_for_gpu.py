"""Compiles a training step for GPUs that are not there, and bounds its time.

    python tools/compile_for_gpu.py [--cases big/12480/H100,...] [--environment FOLDER]

Forward and backward of one part in bfloat16, loss and dropout included, are lowered by
TensorFlow as they are under `--xla`, and compiled by the XLA of JAX, which needs no GPU
for it, in an environment of its own. Printed are kernels, memory, bytes, operations and
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

from benchmarks.in_turn import Process, peer, peer_versions, printed
from benchmarks.machine import Result, say
from environments import make_environment
from flags import several
from gpu import roofline
from gpu.chips import CHIPS, Chip

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
"""Of all weights, float32, that an update needs beside weights and gradients: Adam's
moments, the gradients' sum over parts, and what goes to other devices."""

SECONDS = {"big/12480/H100": 0.049}
MEMORY = {"big/12480": 40e9, "big/24960": 80e9}
"""The budgets: expected seconds of a case, and bytes on any chip."""


class Case(NamedTuple):
    """One step on one chip."""

    size: str
    positions: int
    chip: str

    @property
    def program(self) -> str:
        """What is the same on every chip."""
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
    """Parses the flags, compiles case by case and prints what was found."""
    parser = cli.ArgumentParser(
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
        result: Result = {"versions": _versions(python), "cases": {}}
        with printed(result, text_of, args.json):
            _compile(args.cases, python, Path(temporary), result["cases"])
    beyond = [line for each in result["cases"].values() for line in each["beyond"]]
    for line in beyond:
        say(f"beyond its budget: {line}")
    if beyond:
        sys.exit(EXIT_BEYOND_BUDGET)


def _compile(
    cases: Sequence[Case], python: str, folder: Path, found: dict[str, Result]
) -> None:
    """Compiles all cases; `found` gets what is known at any moment."""
    from gpu.lowering import lowered

    for each in cases:
        program = folder / each.program.replace("/", "_")
        if not program.exists():
            say(f"{each.program}: TensorFlow lowers it ...")
            rows = each.positions // LENGTH
            program.write_bytes(lowered(each.size, rows, LENGTH, PRECISION))
        say(f"{each}: XLA compiles it ...")
        chip = CHIPS[each.chip]
        request = {"program": str(program), "chip": chip.description()}
        # A process of its own, whose memory goes back.
        compiler = peer("XLA", python, "compile_hlo.py")
        with Process(compiler, folder) as process:
            answer = process.ask(request)
        found[str(each)] = summary(each, answer, chip)


def summary(case: Case, answer: Result, chip: Chip) -> Result:
    """Counts what a compiled case needs, and holds it to its budgets.

    Bytes, operations and seconds; `memory` is the temporaries with all that the device
    holds meanwhile; `beyond` are lines of what is too much.
    """
    kernels = roofline.kernels(answer["compiled"])
    weights, gradients = answer["arguments"], answer["results"]
    memory = answer["temporaries"] + weights + gradients + COPIES * weights
    found = {
        "positions": case.positions,
        "kernels": len(kernels),
        "temporaries": answer["temporaries"],
        "memory": memory,
        "moved": sum(kernel.moved for kernel in kernels),
        "operations": sum(kernel.operations for kernel in kernels),
        "compile_seconds": answer["compile_seconds"],
        "least_seconds": sum(kernel.least_seconds(chip) for kernel in kernels),
        "expected_seconds": sum(kernel.expected_seconds(chip) for kernel in kernels),
        "kinds": roofline.by_kind(kernels, chip),
    }
    beyond = []
    for name, unit, scale, allowed in (
        ("expected_seconds", "ms", 1e-3, SECONDS.get(str(case))),
        ("memory", "GB", 1e9, MEMORY.get(case.program)),
    ):
        if allowed and found[name] > allowed:
            told = f"{found[name] / scale:.1f} {unit}, more than {allowed / scale:.1f}"
            beyond.append(f"{case}: {told}")
    return found | {"beyond": beyond}


def text_of(result: Result) -> str:
    """Writes a table, the arithmetic below, and the kinds of kernels of each case."""
    columns = (
        *("case", "kernels", "temporaries, memory (GB)", "moved (GB)", "TFLOP"),
        *("compiled (s)", "least (ms)", "expected (ms)", "target positions/s"),
    )
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for name, each in result["cases"].items():
        lines.append(
            f"| {name} | {each['kernels']:,} | {each['temporaries'] / 1e9:.1f}, "
            f"{each['memory'] / 1e9:.1f} | {each['moved'] / 1e9:.1f} | "
            f"{each['operations'] / 1e12:.2f} | {each['compile_seconds']:.0f} | "
            f"{each['least_seconds'] * 1e3:.1f} | {each['expected_seconds'] * 1e3:.1f} "
            f"| {each['positions'] / each['expected_seconds']:,.0f} |"
        )
    lines += ["", *(_figures(name, chip) for name, chip in CHIPS.items())]
    lines += [
        "least: the sum over kernels of max(bytes / bandwidth, operations / peak)",
        f"expected: the same with {roofline.BANDWIDTH_REACHED:.0%} of the bandwidth, "
        f"{roofline.PEAK_REACHED:.1%} of the peak, and "
        f"{roofline.LAUNCH_SECONDS * 1e6:g} us a kernel",
        f"memory: temporaries, weights, gradients, and the weights {COPIES} times more",
        f"versions: {result['versions']}",
    ]
    for name, each in result["cases"].items():
        lines += ["", f"{name}, expected:"]
        for kind, of in each["kinds"].items():
            lines.append(
                f"  {kind:28} {of['kernels']:5,} kernels {of['moved'] / 1e9:8.2f} GB "
                f"{of['expected'] * 1e3:8.2f} ms"
            )
    return "\n".join(lines)


def _figures(name: str, chip: Chip) -> str:
    bandwidth, peak = chip.bandwidth / 1e12, chip.peak / 1e12
    return f"{name}: {bandwidth:g} TB/s, {peak:g} TFLOP/s in {PRECISION}"


def _versions(python: str) -> str:
    packages = ("jax", "jaxlib", "jax-cuda12-plugin", "nvidia-cuda-nvcc-cu12")
    theirs = peer_versions(python, "--environment", *packages)
    import tensorflow as tf

    return f"TensorFlow {tf.__version__}; {theirs}"


if __name__ == "__main__":
    cli.run(main)
