"""Measures training and translating on one GPU of this machine, in ten minutes at most.

    python tools/benchmarks/benchmark_gpu.py

Measured are products and copies, an update of one micro-batch of three sizes, in TF32
(float32's products on a GPU) and bfloat16, with XLA and without, and beam search. A
machine without a GPU makes a dry run of toy sizes, which shows that it works.
`tools/inject_faults.py` kills and resumes a training on a GPU.
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
from benchmarks.work import Product, work_of
from t2t_repro import hparams
from t2t_repro.command_line import cli

NAMES = {"float32": "TF32", "bfloat16": "bfloat16"}
PEAKS = {"H100": 989.5e12, "H200": 989.5e12, "A100": 312e12}
"""Operations a second in bfloat16 without sparsity, by NVIDIA's data sheets (SXM)."""
SEED = 1
VOCABULARY = 300
"""Subwords of the search's tokenizer, which has nothing to do."""


class Sizes(NamedTuple):
    """Sizes of the measurements: the defaults on a GPU."""

    size: str = "big"  # A hyper-parameter set.
    rows: Sequence[int] = (120, 416, 832)  # Sentence pairs of a micro-batch.
    length: int = 30  # Positions of each side.
    side: int = 8192  # Rows of the square matrices.
    copied: int = 2**31  # Bytes.
    rounds: int = 3  # Turns of a measurement, of which the median counts.
    steps: int = 8  # Steps of a turn.
    sentences: int = 128  # Translated at once.


DRY = Sizes("tiny", (4,), 8, 64, 2**16, 1, 2, 2)


class Measurement(NamedTuple):
    """A task of `benchmarks.worker`, and the operations of one of its steps."""

    name: str
    task: str
    given: dict[str, Any]
    request: Any
    tokens: int = 0
    operations: float = 0.0
    moved: int = 0
    begin: Sequence[Any] = (1, 1)


class _TimeIsUpError(Exception):
    """The minutes are over."""


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, measures and prints."""
    parser = report.parser("Measures training and translating on a GPU.")
    minutes = "time limit, after which the result so far is printed"
    parser.add_argument("--minutes", type=cli.at_least(1), default=10, help=minutes)
    args = parser.parse_args(argv)
    cli.start_tensorflow(args.verbose)
    gpu = _gpu()
    sizes = Sizes() if gpu else DRY
    dry = "no GPU: a dry run of toy sizes, whose figures mean nothing"
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
    """Lists the measurements, the most important first."""
    found = []
    product = Product(4, 1, sizes.side, sizes.side, sizes.side)
    for precision, name in NAMES.items():
        given = {"precision": precision, "products": [asdict(product)]}
        title = f"products of {sizes.side:,} x {sizes.side:,}, {name}"
        each = Measurement(title, "training.square", given, sizes.steps)
        found.append(each._replace(operations=product.flops))
    copied = {"bytes": sizes.copied}
    copy = Measurement("copy", "training.copy", copied, sizes.steps)
    found.append(copy._replace(moved=2 * sizes.copied))
    for precision in ("bfloat16", "float32"):
        for xla in (True, False):
            found += [_update(sizes, rows, precision, xla) for rows in sizes.rows]
        found.append(_search(sizes, folder, precision))
    return found


def _update(sizes: Sizes, rows: int, precision: str, xla: bool) -> Measurement:
    """Returns an update of the weights from one micro-batch."""
    chosen = hparams.load(sizes.size)
    length, vocab_size = sizes.length, chosen.vocab_size
    work = work_of(sizes.size, rows, length, vocab_size)
    work = replace(work, precision=precision, xla=xla, dropout=chosen.dropout)
    title = f"update of {sizes.size}, {work.tokens:,} positions, {NAMES[precision]}"
    operations = rows * training_flops(chosen, vocab_size, length, length)
    found = Measurement(
        title + ", XLA" * xla, "training.train", asdict(work), sizes.steps
    )
    return found._replace(tokens=work.tokens, operations=operations)


def _search(sizes: Sizes, folder: str, precision: str) -> Measurement:
    """Returns beam search for two batches, one after the other."""
    chosen, steps = hparams.load(sizes.size), 2 * sizes.length
    given = {
        "work_dir": folder,
        "d_model": chosen.d_model,
        "num_layers": chosen.num_layers,
        "vocab_size": chosen.vocab_size,
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
    *begin, _together, alone, _sentence = decoding.works_of(Namespace(**given))
    return Measurement(
        f"beam search, {sizes.sentences} sentences, {NAMES[precision]}",
        "decoding.t2t_repro",
        given,
        alone,
        tokens=2 * sizes.sentences * steps,
        begin=(begin[0], alone),
    )


def _measure(
    each: Measurement, sizes: Sizes, gpu: str | None, folder: Path, table: Result
) -> None:
    """Measures in a new process; `table` gets its row.

    `MFU` is the operations' share of the GPU's peak in bfloat16, where that is known.
    """
    # The figures are those of one GPU.
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0]
    contender = own(each.name, each.task, each.given, gpus=visible if gpu else "-1")
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
    """Returns the name of the first GPU, None where there is none."""
    import tensorflow as tf

    gpus = tf.config.list_physical_devices("GPU")
    if not gpus:
        return None
    return str(tf.config.experimental.get_device_details(gpus[0])["device_name"])


@contextmanager
def _at_most(minutes: int) -> Iterator[None]:
    """Ends the context, with its processes, when the time is up."""

    def end(*_: object) -> None:
        raise _TimeIsUpError

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(60 * minutes)
    try:
        yield
    except _TimeIsUpError:
        say(f"{minutes} minutes are over; the figures so far:")
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


if __name__ == "__main__":
    cli.run(main)
