"""Measures training and translating on one GPU of this machine, in ten minutes at most.

    python tools/benchmark_gpu.py

What the GPU reaches in products and copies; an update of one part of three sizes, in
TF32 (float32's products on a GPU) and bfloat16, with XLA and without; beam search; and
a training that is killed and goes on. It prints the table that docs/speed.md leaves
open. A machine without a GPU makes a dry run of toy sizes, which shows that it works.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks import decoding
from benchmarks.in_turn import TOOLS, in_turn, own, printed
from benchmarks.machine import Result, machine, machine_lines, say
from benchmarks.work import Product, work_of
from gpu.chips import CHIPS
from model_costs import training_flops

from t2t_repro import hparams
from t2t_repro.command_line import cli

NAMES = {"float32": "TF32", "bfloat16": "bfloat16"}
SEED = 1
VOCABULARY = 300
"""Subwords of the search's tokenizer, which has nothing to do."""


class Sizes(NamedTuple):
    """What is measured: the defaults on a GPU."""

    size: str = "big"  # A hyper-parameter set.
    rows: Sequence[int] = (120, 416, 832)  # Sentence pairs of a part.
    length: int = 30  # Positions of each side.
    side: int = 8192  # Of the square matrices that are multiplied.
    copied: int = 2**31  # Bytes.
    rounds: int = 3  # Turns of a measurement, of which the median counts.
    steps: int = 8  # Of a turn.
    sentences: int = 128  # That are translated at once.
    killed: Sequence[str] = ()  # Flags of `inject_faults.py`.


TRAINED = "tiny,d_model=32,d_ff=64,num_layers=1,tokens_per_batch=512,train_steps=60,"
TRAINED += "checkpoint_steps=20,eval_steps=60"
DRY = Sizes("tiny", (4,), 8, 64, 2**16, 1, 2, 2, killed=("--hparams", TRAINED))


class Measurement(NamedTuple):
    """A task of `benchmarks.worker`, and what one of its steps computes."""

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
    parser = cli.ArgumentParser("Measures training and translating on a GPU.")
    minutes = "after which it ends with what it has"
    parser.add_argument("--minutes", type=cli.at_least(1), default=10, help=minutes)
    args = parser.parse_args(argv)
    cli.start_tensorflow(args.verbose)
    gpu = _gpu()
    sizes = Sizes() if gpu else DRY
    result: Result = {"machine": machine(), "gpu": gpu, "rows": {}}
    with (
        tempfile.TemporaryDirectory() as folder,
        printed(result, text_of, args.json),
        _at_most(args.minutes),
    ):
        planned = measurements(sizes, folder)
        result["rows"] = {each.name: None for each in planned}
        result["killed"] = "the time was over"
        result["killed"] = _killed(sizes.killed)
        decoding.write_vocabulary(Path(folder), VOCABULARY, SEED)
        for each in planned:
            result["rows"][each.name] = _measured(each, sizes, gpu, Path(folder))


def measurements(sizes: Sizes, folder: str) -> list[Measurement]:
    """Lists what is measured, what matters most first."""
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
    """Returns an update of the weights from one part."""
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


def _measured(
    each: Measurement, sizes: Sizes, gpu: str | None, folder: Path
) -> dict[str, Any]:
    """Measures in a process of its own; returns what `row` does."""
    # One GPU: what one does is what is compared.
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0]
    contender = own(each.name, each.task, each.given, gpus=visible if gpu else "-1")
    rounds = [[each.request]] * sizes.rounds
    answers = [a for *_, a in in_turn([contender], rounds, folder, begin=each.begin)]
    return row(each, answers, gpu)


def row(each: Measurement, answers: Sequence[Result], gpu: str | None) -> Result:
    """Returns what a step took, in the median, and what it reached.

    Seconds, tokens, operations and bytes a second, `start_seconds` until the first
    step was done, and `mfu`: the operations' share of the GPU's peak in bfloat16, None
    where the peak is not known.
    """
    steps = each.request if isinstance(each.request, int) else 1
    seconds = median(answer["seconds"] for answer in answers) / steps
    peak = next((c.peak for name, c in CHIPS.items() if gpu and name in gpu), None)
    return {
        "seconds": seconds,
        "tokens_per_second": each.tokens / seconds,
        "operations_per_second": each.operations / seconds,
        "bytes_per_second": each.moved / seconds,
        "mfu": each.operations / seconds / peak if peak else None,
        "start_seconds": answers[0]["start_seconds"],
    }


def _killed(flags: Sequence[str]) -> str:
    """Kills a training and lets it go on; returns what `inject_faults.py` says."""
    say("killing a training ...")
    command = [sys.executable, str(TOOLS / "inject_faults.py"), "--kills=1", *flags]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8"
    ) as process:
        try:
            lines, _ = process.communicate()
        except BaseException:
            process.send_signal(signal.SIGINT)  # It ends its own processes.
            raise
    return str(lines.strip().rpartition("\n")[2])


def text_of(result: Result) -> str:
    """Writes the table for people."""
    columns = ("ms", "target tokens/s", "TFLOP/s", "MFU", "GB/s", "first step (s)")
    gpu = result["gpu"] or "no GPU: a dry run of toy sizes, whose figures mean nothing"
    lines = [*machine_lines(result["machine"]), gpu, ""]
    lines += [f"| | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for name, each in result["rows"].items():
        if each is None:
            lines.append(f"| {name} | not measured{' |' * len(columns)}")
            continue
        cells = (
            f"{each['seconds'] * 1e3:.2f}",
            _written(each["tokens_per_second"], ",.0f"),
            _written(each["operations_per_second"] / 1e12, ".3g"),
            _written(each["mfu"], ".1%"),
            _written(each["bytes_per_second"] / 1e9, ",.0f"),
            f"{each['start_seconds']:.0f}",
        )
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", f"killed and resumed: {result['killed']}"])


def _written(value: float | None, form: str) -> str:
    """Writes a number; what was not measured, or does not apply, is nothing."""
    return format(value, form) if value else ""


def _gpu() -> str | None:
    """Returns the name of the first GPU, None where there is none."""
    import tensorflow as tf

    gpus = tf.config.list_physical_devices("GPU")
    if not gpus:
        return None
    return str(tf.config.experimental.get_device_details(gpus[0])["device_name"])


@contextmanager
def _at_most(minutes: int) -> Iterator[None]:
    """Ends what is in the context, with its processes, when the time is up."""

    def end(*_: object) -> None:
        raise _TimeIsUpError

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(60 * minutes)
    try:
        yield
    except _TimeIsUpError:
        say(f"{minutes} minutes are over; what was measured until then:")
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


if __name__ == "__main__":
    cli.run(main)
