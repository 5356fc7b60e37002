"""Measures training and beam search on one GPU, in ten minutes at most.

    python tools/benchmarks/benchmark_gpu.py

Times matmuls, memory copies, training steps with micro-batches of three sizes (TF32 and
bfloat16, with and without XLA), and beam search. TF32 is TensorFlow's default for
float32 matmuls on a GPU. Without a GPU, the benchmark makes a dry run with toy sizes.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from model_costs import training_flops

from benchmarks import decoding, report
from benchmarks.in_turn import in_turn, own
from benchmarks.report import Result, say
from benchmarks.work import Matmul, work_of
from t2t_repro import hparams
from t2t_repro.command_line import cli

NAMES = {"float32": "TF32", "bfloat16": "bfloat16"}
PEAKS = {"H100": 989.5e12, "H200": 989.5e12, "A100": 312e12}
"""Peak FLOP/s in bfloat16 without sparsity, from NVIDIA's data sheets (SXM)."""
SEED = 1
VOCABULARY = 300
"""Subwords of the tokenizer, which beam search loads but does not use."""


class Sizes(NamedTuple):
    """Sizes of the measurements, with the defaults for a GPU.

    Attributes:
        size: Name of the hyper-parameter set.
        rows: Number of sentence pairs per micro-batch, for each training measurement.
        length: Number of tokens per sentence, on both sides.
        side: Number of rows and columns of the square matrices.
        copied: Size of the copied tensor in bytes.
        rounds: Number of turns per measurement; their median is reported.
        steps: Number of steps per turn.
        sentences: Number of sentences per batch in beam search.
    """

    size: str = "big"
    rows: Sequence[int] = (120, 416, 832)
    length: int = 30
    side: int = 8192
    copied: int = 2**31
    rounds: int = 3
    steps: int = 8
    sentences: int = 128


DRY = Sizes("tiny", (4,), 8, 64, 2**16, 1, 2, 2)


class Measurement(NamedTuple):
    """A task of `benchmarks.worker` with the amount of work per step.

    Attributes:
        name: Name of the row in the table.
        task: Module and function of the task.
        fields: Argument of the task.
        request: Request of each turn.
        tokens: Number of target tokens per step.
        operations: Number of floating-point operations per step.
        moved: Number of bytes read and written per step.
        begin: Warm-up requests.
    """

    name: str
    task: str
    fields: dict[str, Any]
    request: Any
    tokens: int = 0
    operations: float = 0.0
    moved: int = 0
    begin: Sequence[Any] = (1, 1)


class _TimeIsUpError(Exception):
    """Raised when the time limit is reached."""


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs the benchmark and prints the figures."""
    parser = report.parser("Measures training and beam search on a GPU.")
    minutes = "time limit in minutes, after which the result so far is printed"
    parser.add_argument("--minutes", type=cli.at_least(1), default=10, help=minutes)
    args = parser.parse_args(argv)
    cli.start_tensorflow(args.verbose)
    gpu = _gpu()
    sizes = Sizes() if gpu else DRY
    dry = "no GPU found: dry run with toy sizes, whose figures are meaningless"
    with (
        tempfile.TemporaryDirectory() as folder,
        report.reported(args, [gpu or dry]) as result,
        _at_most(args.minutes),
    ):
        result["machine"]["gpu"] = gpu
        table: Result = {}
        result["tables"]["on a GPU"] = table
        decoding.write_vocabulary(Path(folder), VOCABULARY, SEED)
        for each in measurements(sizes, folder):
            _measure(each, sizes, gpu, Path(folder), table)


def measurements(sizes: Sizes, folder: str) -> list[Measurement]:
    """Returns the measurements, most important first."""
    planned = []
    matmul = Matmul(4, 1, sizes.side, sizes.side, sizes.side)
    for precision, name in NAMES.items():
        fields = {"precision": precision, "matmuls": [asdict(matmul)]}
        title = f"matmuls of {sizes.side:,} x {sizes.side:,}, {name}"
        each = Measurement(title, "training.square", fields, sizes.steps)
        planned.append(each._replace(operations=matmul.flops))
    copied = {"bytes": sizes.copied}
    copy = Measurement("copy", "training.copy", copied, sizes.steps)
    planned.append(copy._replace(moved=2 * sizes.copied))
    for precision in ("bfloat16", "float32"):
        for xla in (True, False):
            planned += [_step(sizes, rows, precision, xla) for rows in sizes.rows]
        planned.append(_search(sizes, folder, precision))
    return planned


def _step(sizes: Sizes, rows: int, precision: str, xla: bool) -> Measurement:
    """Returns the measurement of a training step with one micro-batch."""
    values = hparams.load(sizes.size)
    length, vocab_size = sizes.length, values.vocab_size
    work = work_of(sizes.size, rows, length, vocab_size)
    work = replace(work, precision=precision, xla=xla, dropout=values.dropout)
    title = f"step of {sizes.size}, {work.tokens:,} positions, {NAMES[precision]}"
    operations = rows * training_flops(values, vocab_size, length, length)
    step = Measurement(
        title + ", XLA" * xla, "training.train", asdict(work), sizes.steps
    )
    return step._replace(tokens=work.tokens, operations=operations)


def _search(sizes: Sizes, folder: str, precision: str) -> Measurement:
    """Returns the measurement of beam search for two consecutive batches."""
    values, steps = hparams.load(sizes.size), 2 * sizes.length
    fields = {
        "work_dir": folder,
        "d_model": values.d_model,
        "num_layers": values.num_layers,
        "vocab_size": values.vocab_size,
        "length": sizes.length,
        "steps": steps,
        "batch_size": sizes.sentences,
        "batches": 2,
        "sentences": 1,
        "beam_size": 4,
        "alpha": 0.6,
        "seed": SEED,
        "precision": precision,
        "xla": False,
    }
    *begin, _parallel, batch, _sentence = decoding.works_of(Namespace(**fields))
    return Measurement(
        f"beam search, {sizes.sentences} sentences, {NAMES[precision]}",
        "decoding.t2t_repro",
        fields,
        batch,
        tokens=2 * sizes.sentences * steps,
        begin=(begin[0], batch),
    )


def _measure(
    each: Measurement, sizes: Sizes, gpu: str | None, folder: Path, table: Result
) -> None:
    """Runs a measurement in a new process; `table` gets its row.

    `MFU` is the ratio of the measured FLOP/s to the GPU's bfloat16 peak. It is omitted
    for GPUs that `PEAKS` does not list.
    """
    # With several visible GPUs, training would be data-parallel.
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0]
    contender = own(each.name, each.task, each.fields, gpus=visible if gpu else "-1")
    rounds = [[each.request]] * sizes.rounds
    steps = each.request if isinstance(each.request, int) else 1
    peak = next((peak for name, peak in PEAKS.items() if gpu and name in gpu), None)
    for *_, answer in in_turn([contender], rounds, folder, begin=each.begin):
        report.add_turn(
            table,
            each.name,
            answer,
            tokens=steps * each.tokens,
            operations=steps * each.operations,
            moved=steps * each.moved,
            steps=steps,
        )
        if peak and each.operations:
            speeds = table[each.name]["GFLOP/s"]
            table[each.name]["MFU (%)"] = [1e11 * speed / peak for speed in speeds]


def _gpu() -> str | None:
    """Returns the name of the first GPU, or None without a GPU."""
    import tensorflow as tf

    gpus = tf.config.list_physical_devices("GPU")
    if not gpus:
        return None
    return str(tf.config.experimental.get_device_details(gpus[0])["device_name"])


@contextmanager
def _at_most(minutes: int) -> Iterator[None]:
    """Leaves the context when the time limit is reached, without an error."""

    def end(*_: object) -> None:
        raise _TimeIsUpError

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(60 * minutes)
    try:
        yield
    except _TimeIsUpError:
        say(f"time limit of {minutes} minutes reached; the figures so far:")
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


if __name__ == "__main__":
    cli.run(main)
