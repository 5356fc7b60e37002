"""Measures training and beam search on one GPU, in eight minutes by default.

    python tools/benchmarks/benchmark_gpu.py [--minutes 8]

Times training steps in bfloat16: packed rows with XLA's default flags, without Triton's
matmuls, and without autotuning (level 0), which chooses kernels by measured time; then
unpacked pairs, with and without XLA, and beam search. If time remains, it also times a
warm autotuning cache, matmuls, memory copies, and steps with other settings. Packed
rows have the chunked loss unless the name of a measurement has the plain one. TF32 is
TensorFlow's default for float32 matmuls on a GPU. At the time limit or after Ctrl-C,
the benchmark prints the figures so far. Without a GPU, it makes a dry run with toy
sizes.
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
        side: Number of rows and columns of the square matrices.
        copied: Size of the copied tensor in bytes.
        rounds: Number of turns per measurement; their median is reported.
        steps: Number of steps per turn.
        sentences: Number of sentences per batch in beam search.
    """

    size: str = "big"
    rows: tuple[int, int] = (48, 96)
    packed_length: int = 256
    pairs: tuple[int, int] = (416, 120)
    length: int = 30
    side: int = 8192
    copied: int = 2**31
    rounds: int = 3
    steps: int = 8
    sentences: int = 128


DRY = Sizes("tiny", (2, 4), 24, (4, 2), 8, 64, 2**16, 1, 2, 2)


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
        flags: XLA flags of the process.
    """

    name: str
    task: str
    fields: dict[str, Any]
    request: Any
    tokens: int = 0
    operations: float = 0.0
    moved: int = 0
    begin: Sequence[Any] = (1, 1)
    flags: str = ""


class _TimeIsUpError(Exception):
    """Raised when the time limit is reached."""


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs the benchmark and prints the figures."""
    minutes = "time limit in minutes, after which the result so far is printed"
    flag = ("minutes", cli.at_least(1), 8, minutes)
    args = report.parser(__doc__, flag).parse_args(argv)
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
    small, large = sizes.rows
    pairs, few_pairs = sizes.pairs
    # The first of these measurements fills the cache for the one with a warm cache.
    cache = Path(folder) / "autotune"
    cache.mkdir(exist_ok=True)
    flag = f"--xla_gpu_per_fusion_autotune_cache_dir={cache}"
    packed = _packed(sizes, small)
    cached, unpacked = packed._replace(flags=flag), _step(sizes, pairs)
    return [
        cached,
        _without_triton(packed),
        _autotuned(_without_triton(packed), 0),
        unpacked,
        _step(sizes, pairs, xla=False),
        _without_triton(unpacked),
        _packed(sizes, large),
        *[_search(sizes, folder, precision) for precision in NAMES],
        cached._replace(name=f"{packed.name}, warm cache"),
        *[_matmuls(sizes, precision) for precision in NAMES],
        _copy(sizes),
        _with_plain_loss(_packed(sizes, large)),
        _step(sizes, pairs, precision="float32"),
        _autotuned(packed, 2),
        _step(sizes, few_pairs),
        _autotuned(packed, 0),
    ]


def _matmuls(sizes: Sizes, precision: str) -> Measurement:
    """Returns the measurement of square matmuls, forward and backward."""
    side = sizes.side
    matmul = Matmul(4, 1, side, side, side)
    fields = {"precision": precision, "matmuls": [asdict(matmul)]}
    name = f"matmuls of {side:,} x {side:,}, {NAMES[precision]}"
    each = Measurement(name, "training.square", fields, sizes.steps)
    return each._replace(operations=matmul.flops)


def _copy(sizes: Sizes) -> Measurement:
    """Returns the measurement of a memory copy."""
    each = Measurement("copy", "training.copy", {"bytes": sizes.copied}, sizes.steps)
    return each._replace(moved=2 * sizes.copied)


def _packed(sizes: Sizes, rows: int) -> Measurement:
    """Returns the measurement of a training step with packed rows."""
    length = sizes.packed_length
    step = _step(sizes, rows * (length // sizes.length), packed_length=length)
    return step._replace(name=f"step of {sizes.size}, packed {rows} x {length}")


def _autotuned(step: Measurement, level: int) -> Measurement:
    """Returns the measurement with another level of autotuning than 4."""
    name = f"{step.name}, autotune level {level}"
    flags = f"{step.flags} --xla_gpu_autotune_level={level}".strip()
    return step._replace(name=name, flags=flags)


def _without_triton(step: Measurement) -> Measurement:
    """Returns the measurement with matmuls of cuBLAS instead of Triton."""
    name = f"{step.name}, without Triton's matmuls"
    return step._replace(name=name, flags="--xla_gpu_enable_triton_gemm=false")


def _with_plain_loss(step: Measurement) -> Measurement:
    """Returns the measurement with the reference implementation of the loss."""
    fields = step.fields | {"without": ["chunked_loss"]}
    return step._replace(name=f"{step.name}, plain loss", fields=fields)


def _step(
    sizes: Sizes,
    pairs: int,
    packed_length: int = 0,
    xla: bool = True,
    precision: str = "bfloat16",
) -> Measurement:
    """Returns the measurement of a training step with one micro-batch."""
    values = hparams.load(sizes.size)
    length, vocab_size = sizes.length, values.vocab_size
    work = replace(
        work_of(sizes.size, pairs, length, vocab_size),
        precision=precision,
        xla=xla,
        dropout=values.dropout,
        packed_length=packed_length,
    )
    suffix = f", {NAMES[precision]}" * (precision != "bfloat16")
    suffix += ", without XLA" * (not xla)
    return Measurement(
        f"step of {sizes.size}, {pairs} x {length}{suffix}",
        "training.train",
        asdict(work),
        sizes.steps,
        tokens=work.tokens,
        operations=pairs * training_flops(values, vocab_size, length, length),
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
            moved=steps * each.moved,
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
