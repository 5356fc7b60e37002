"""Measures training and beam search on one GPU, in eight minutes by default.

    python tools/benchmarks/benchmark_gpu.py [--minutes 8]

Times training steps in bfloat16: packed rows with XLA's default flags, without Triton's
matmuls, and without autotuning (level 0), which chooses kernels by measured time; then
unpacked pairs, with and without XLA, and beam search. If time remains, it also times
steps with other settings. Packed rows have the chunked loss
unless the name of a measurement has the plain one. TF32 is TensorFlow's default for
float32 matmuls on a GPU. At the time limit or after Ctrl-C, the benchmark prints the
figures so far. Without a GPU, it makes a dry run with toy sizes.
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
from benchmarks.work import make_workload
from t2t_repro import hparams
from t2t_repro.command_line import cli
from t2t_repro.system.errors import UserError

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
        rows: Number of packed rows of the smaller and the larger micro-batch.
        packed_length: Number of positions per side of a packed row.
        pairs: Number of unpacked pairs of the larger and the smaller micro-batch.
        length: Number of tokens per sentence, on both sides.
        rounds: Number of turns per measurement; their median is reported.
        steps: Number of steps per turn.
        sentences: Number of sentences per batch in beam search.
    """

    size: str = "big"
    rows: tuple[int, int] = (48, 96)
    packed_length: int = 256
    pairs: tuple[int, int] = (416, 120)
    length: int = 30
    rounds: int = 3
    steps: int = 8
    sentences: int = 128


DRY = Sizes("tiny", (2, 4), 24, (4, 2), 8, 1, 2, 2)


class Measurement(NamedTuple):
    """A task of `benchmarks.worker` with the amount of work per step.

    Attributes:
        name: Name of the row in the table.
        task: Module and function of the task.
        fields: Argument of the task.
        request: Request of each turn.
        tokens: Number of target tokens per step.
        operations: Number of floating-point operations per step.
        begin: Warm-up requests.
        flags: XLA flags of the process.
    """

    name: str
    task: str
    fields: dict[str, Any]
    request: Any
    tokens: int = 0
    operations: float = 0.0
    begin: Sequence[Any] = (1, 1)
    flags: str = ""


class _TimeIsUpError(Exception):
    """Raised when the time limit is reached."""


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs the benchmark and prints the figures."""
    minutes = "time limit in minutes, after which the result so far is printed"
    flag = ("minutes", cli.int_range(1), 8, minutes)
    args = report.parser(__doc__, flag).parse_args(argv)
    cli.start_tensorflow(args.verbose)
    gpu = _gpu()
    sizes = Sizes() if gpu else DRY
    dry = "no GPU found: dry run with toy sizes, whose figures are meaningless"
    with (
        tempfile.TemporaryDirectory() as folder,
        report.report_at_end(args, [gpu or dry]) as result,
        _limit_time(args.minutes),
    ):
        result["machine"]["gpu"] = gpu
        table: Result = {}
        result["tables"]["on a GPU"] = table
        decoding.write_vocabulary(Path(folder), VOCABULARY, SEED)
        for each in measurements(sizes, folder):
            try:
                _measure(each, sizes, gpu, Path(folder), table)
            except UserError as error:
                say(str(error))
                table.setdefault(each.name, {})["error"] = str(error)


def measurements(sizes: Sizes, folder: str) -> list[Measurement]:
    """Returns the measurements, most important first.

    Args:
        sizes: Sizes of the measurements.
        folder: Folder for files that the measurements share.
    """
    rows, more_rows = sizes.rows
    pairs, few_pairs = sizes.pairs
    triton, level = "--xla_gpu_enable_triton_gemm=false", "--xla_gpu_autotune_level="
    no_triton = "without Triton's matmuls"
    return [
        _use_packing(sizes, rows),
        _use_packing(sizes, rows, no_triton, flags=triton),
        _use_packing(
            sizes, rows, f"{no_triton}, autotune level 0", flags=f"{triton} {level}0"
        ),
        _step(sizes, pairs),
        _step(sizes, pairs, "without XLA", xla=False),
        _step(sizes, pairs, no_triton, flags=triton),
        _use_packing(sizes, more_rows),
        *[_search(sizes, folder, precision) for precision in NAMES],
        _use_packing(sizes, more_rows, "plain loss", without=["chunked_loss"]),
        _step(sizes, pairs, NAMES["float32"], precision="float32"),
        _step(sizes, few_pairs),
        _use_packing(sizes, rows, "autotune level 0", flags=f"{level}0"),
    ]


def _use_packing(
    sizes: Sizes, rows: int, note: str = "", **options: Any
) -> Measurement:
    """Returns the measurement of a training step with packed rows; see `_step`."""
    length = sizes.packed_length
    pairs = rows * (length // sizes.length)
    step = _step(sizes, pairs, packed_length=length, **options)
    name = f"step of {sizes.size}, packed {rows} x {length}"
    return step._replace(name=", ".join(filter(None, [name, note])))


def _step(
    sizes: Sizes,
    pairs: int,
    note: str = "",
    *,
    flags: str = "",
    without: Sequence[str] = (),
    precision: str = "bfloat16",
    xla: bool = True,
    packed_length: int = 0,
) -> Measurement:
    """Returns the measurement of a training step with one micro-batch.

    Args:
        sizes: Sizes of the measurements.
        pairs: Number of sentence pairs.
        note: End of the name.
        flags: XLA flags of the process.
        without: Optimized implementations to disable.
        precision: Precision of the step.
        xla: Whether XLA compiles the step.
        packed_length: Number of positions per side of a packed row, or 0.
    """
    values = hparams.load(sizes.size)
    length, vocab_size = sizes.length, values.vocab_size
    work = replace(
        make_workload(sizes.size, pairs, length, vocab_size),
        precision=precision,
        xla=xla,
        dropout=values.dropout,
        packed_length=packed_length,
    )
    name = f"step of {sizes.size}, {pairs} x {length}"
    return Measurement(
        ", ".join(filter(None, [name, note])),
        "training.train",
        asdict(work) | {"without": list(without)},
        sizes.steps,
        tokens=work.tokens,
        operations=pairs * training_flops(values, vocab_size, length, length),
        flags=flags,
    )


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
    *begin, _parallel, batch, _sentence = decoding.make_workloads(Namespace(**fields))
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
    for GPUs that `PEAKS` does not list. The operations of padding do not count.
    """
    # With several visible GPUs, training would be data-parallel.
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0]
    variables = {
        "CUDA_VISIBLE_DEVICES": visible if gpu else "-1",
        "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {each.flags}".strip(),
    }
    contender = own(each.name, each.task, each.fields, **variables)
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
            steps=steps,
        )
        row = table[each.name]
        if each.task == "training.train":
            row["compilation (s)"] = answer["first_seconds"]
        if peak and each.operations:
            row["MFU (%)"] = [1e11 * speed / peak for speed in row["GFLOP/s"]]
        if "gpu_memory" in answer:
            row["GPU memory (GB)"] = answer["gpu_memory"] / 1e9


def _gpu() -> str | None:
    """Returns the name of the first GPU, or None without a GPU."""
    import tensorflow as tf

    gpus = tf.config.list_physical_devices("GPU")
    if not gpus:
        return None
    return str(tf.config.experimental.get_device_details(gpus[0])["device_name"])


@contextmanager
def _limit_time(minutes: int) -> Iterator[None]:
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
