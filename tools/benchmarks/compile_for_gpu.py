"""Compiles training steps for absent GPUs, and estimates their time.

    python tools/benchmarks/compile_for_gpu.py [--cases big/packed/48x256/plain/H100]
        [--environment FOLDER] [--keep FOLDER]

TensorFlow lowers the loss and the gradients of one micro-batch in bfloat16, as in
training with `--xla`. XLA then compiles the program without a GPU, in an environment
with JAX. The benchmark prints the memory of temporary tensors, the time of compilation,
and the time of a step according to `roofline.py`. Each case takes about a minute.

`--keep` keeps the programs. `peers/time_hlo.py` times them on a GPU.
"""

from __future__ import annotations

import re
import sys
import tempfile
from argparse import ArgumentTypeError
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from environments import make_environment
from flags import several

from benchmarks import report, roofline
from benchmarks.chips import CHIPS
from benchmarks.in_turn import Process, peer, peer_versions
from benchmarks.report import Result, say
from t2t_repro import fast, hparams
from t2t_repro.command_line import cli
from t2t_repro.system.errors import UserError

JAX = "0.10.2"
INSTALLS = (
    [f"jax=={JAX}"],
    # Dependencies are 4 GB that only a GPU needs.
    [
        "--no-deps",
        f"jax-cuda12-plugin=={JAX}",
        f"jax-cuda12-pjrt=={JAX}",
        "nvidia-cuda-nvcc-cu12==12.9.86",
    ],
)
POSITIONS = 48 * 256
"""Positions per side for which times of different shapes are compared."""

LOSSES: dict[str, Sequence[str]] = {"plain": ["chunked_loss"], "chunked": []}
"""Optimized implementations to disable for each form of the loss."""

_CASE = re.compile(
    rf"([^/]+)/(buckets|packed)/([1-9]\d*)x([1-9]\d*)/({'|'.join(LOSSES)})"
    rf"/({'|'.join(CHIPS)})"
)
PROGRAMS = (
    *("buckets/416x30/plain", "packed/48x256/plain", "packed/48x256/chunked"),
    *("packed/96x256/plain", "packed/96x256/chunked"),
)
CASES = ",".join(f"big/{program}/{chip}" for program in PROGRAMS for chip in CHIPS)


class Case(NamedTuple):
    """A training step on a GPU.

    Attributes:
        size: Name of the hyper-parameter set.
        batching: Value of the hyper-parameter `batching`.
        rows: Number of rows of the micro-batch.
        length: Number of positions per side of a row.
        loss: Form of the loss, one of `LOSSES`.
        chip: GPU, one of `CHIPS`.
    """

    size: str
    batching: str
    rows: int
    length: int
    loss: str
    chip: str

    @property
    def program(self) -> str:
        """The name without the GPU."""
        shape = f"{self.rows}x{self.length}"
        return "/".join([self.size, self.batching, shape, self.loss])

    def __str__(self) -> str:
        """Returns the name, as in `--cases`."""
        return f"{self.program}/{self.chip}"


def case(text: str) -> Case:
    """Reads the name of a case."""
    found = _CASE.fullmatch(text)
    if not found:
        raise ArgumentTypeError(
            f"must be SIZE/BATCHING/ROWSxLENGTH/LOSS/GPU, for example "
            f"{CASES.partition(',')[0]}, not {text!r}"
        )
    size, batching, rows, length, loss, chip = found.groups()
    return Case(size, batching, int(rows), int(length), loss, chip)


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, compiles the cases one after the other and prints figures."""
    steps = "steps as SIZE/BATCHING/ROWSxLENGTH/LOSS/GPU, separated by commas"
    kept = "folder to keep the environment with JAX in, or to reuse"
    args = report.parser(
        __doc__,
        ("cases", several(case), CASES, steps),
        ("environment", str, None, kept),
        ("keep", str, None, "existing folder in which programs are kept"),
    ).parse_args(argv)
    if args.keep and not Path(args.keep).is_dir():
        raise UserError(f"--keep {args.keep}: create this folder first")
    cli.start_tensorflow(args.verbose)
    with tempfile.TemporaryDirectory() as temporary:
        say("creating an environment with JAX ...")
        environment = Path(args.environment or f"{temporary}/environment")
        python = make_environment(environment, *INSTALLS)
        packages = ("jax", "jax-cuda12-plugin", "nvidia-cuda-nvcc-cu12")
        versions = peer_versions(python, "--environment", *packages)
        with report.reported(args, [versions]) as result:
            table: Result = {}
            result["tables"]["training steps compiled for absent GPUs"] = table
            for each in args.cases:
                table[str(each)] = _figures(each, python, Path(args.keep or temporary))


def _figures(case: Case, python: str, folder: Path) -> Result:
    """Compiles a case. The lowered program is kept for other GPUs."""
    program = folder / case.program.replace("/", "_")
    if not program.exists():
        say(f"{case.program}: lowering ...")
        program.write_bytes(_lowered(case))
    say(f"{case}: compiling ...")
    request = {
        "program": str(program),
        "chip": CHIPS[case.chip].description(),
    }
    # The end of the process frees its memory.
    with Process(peer("XLA", python, "compile_hlo.py"), folder) as process:
        return figures(case, process.ask(request))


def _lowered(case: Case) -> bytes:
    """Returns the program of a case; see `lowering.lowered`."""
    from benchmarks.lowering import lowered

    fast.install("GPU", without=LOSSES[case.loss])
    values = hparams.load(case.size).replace(
        precision="bfloat16", xla=True, batching=case.batching
    )
    return lowered(values, case.rows, case.length)


def figures(case: Case, answer: Result) -> Result:
    """Returns the figures of a compiled case.

    Args:
        case: The case.
        answer: Answer of `peers/compile_hlo.py`.
    """
    chip, kernels = CHIPS[case.chip], roofline.kernels(answer["compiled"])
    expected = sum(kernel.seconds(chip) for kernel in kernels) * 1e3
    return {
        "temporaries (GB)": answer["temporaries"] / 1e9,
        "moved (GB)": sum(kernel.moved for kernel in kernels) / 1e9,
        "TFLOP": sum(kernel.operations for kernel in kernels) / 1e12,
        "compilation (CPU s)": answer["compile_seconds"],
        "expected (ms)": expected,
        f"ms per {POSITIONS:,} positions": (
            expected * POSITIONS / (case.rows * case.length)
        ),
    }


if __name__ == "__main__":
    cli.run(main)
