"""Times beam search of t2t_repro, CTranslate2 and keras-hub on the same sentences.

    python tools/benchmarks/benchmark_decode.py [--rounds 3] [--only t2t_repro,...]

A model with random weights translates random sentences in exactly `--steps` steps, so
that all programs do the same work: several batches at once, one batch at a time, small
batches, and one sentence at a time. t2t_repro runs batches in parallel, one per core.
Batches of a few sentences run in another process, which compiles their search in a
thread as on a terminal. t2t_repro is also timed with `--xla` and with a single decoder
layer, as in a student. CTranslate2 runs batches in parallel and one batch on all cores;
the faster of the two is reported. Only float32 and int8 programs run the small batches.

CTranslate2 must be installed (`pip install ctranslate2`), or be excluded with
`--only t2t_repro`. `--only t2t_repro,keras_hub` compares `generate` of
`t2t_repro.hub`, with its own sampler and with keras-hub's `BeamSampler`, on TensorFlow
with XLA and, if it is installed, on JAX.
"""

import os
import sys
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from flags import choice, several

from benchmarks import decoding, keras_hub_search, report
from benchmarks.in_turn import own
from benchmarks.report import Result, say
from t2t_repro.command_line import cli
from t2t_repro.hparams.fields import MOST_ALPHA
from t2t_repro.system.cores import usable_cores

OURS, PEER, HUB = "t2t_repro", "ctranslate2", "keras_hub"
TASKS = {OURS: "decoding.t2t_repro", PEER: "ctranslate2_search.translate"}
FLOAT32, XLA = f"{OURS} float32", f"{OURS} float32, XLA"
INT8, XLA_INT8 = f"{OURS} int8", f"{OURS} int8, XLA"
BFLOAT16 = f"{OURS} bfloat16"
STUDENT = f"{OURS} float32, 1 decoder layer"
THEIR_FLOAT32, THEIR_INT8 = "CTranslate2 float32", "CTranslate2 int8"
HUB_XLA, HUB_JAX = "generate, TensorFlow XLA", "generate, JAX"
BEAM_XLA, BEAM_JAX = "BeamSampler, TensorFlow XLA", "BeamSampler, JAX"
CONTENDERS: dict[str, tuple[str, Result]] = {
    FLOAT32: (OURS, {"precision": "float32", "xla": False}),
    XLA: (OURS, {"precision": "float32", "xla": True}),
    BFLOAT16: (OURS, {"precision": "bfloat16", "xla": False}),
    INT8: (OURS, {"precision": "int8", "xla": False}),
    XLA_INT8: (OURS, {"precision": "int8", "xla": True}),
    STUDENT: (OURS, {"precision": "float32", "xla": False, "num_decoder_layers": 1}),
    THEIR_FLOAT32: (PEER, {"compute_type": "float32"}),
    THEIR_INT8: (PEER, {"compute_type": "int8"}),
    HUB_XLA: (HUB, {"backend": "tensorflow", "sampler": "BeamSearchSampler"}),
    HUB_JAX: (HUB, {"backend": "jax", "sampler": "BeamSearchSampler"}),
    BEAM_XLA: (HUB, {"backend": "tensorflow", "sampler": "BeamSampler"}),
    BEAM_JAX: (HUB, {"backend": "jax", "sampler": "BeamSampler"}),
}
# Programs that also translate small batches.
SMALL = {FLOAT32, XLA, INT8, XLA_INT8, THEIR_FLOAT32, THEIR_INT8}
PAIRS = (
    *((FLOAT32, THEIR_FLOAT32), (XLA, THEIR_FLOAT32), (BFLOAT16, THEIR_INT8)),
    *((INT8, THEIR_INT8), (XLA_INT8, THEIR_INT8), (INT8, THEIR_FLOAT32)),
    *((INT8, FLOAT32), (STUDENT, FLOAT32), (HUB_XLA, FLOAT32), (HUB_JAX, FLOAT32)),
    *((HUB_XLA, BEAM_XLA), (HUB_JAX, BEAM_JAX)),
)


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs the benchmark and prints the figures."""
    args = parse(argv)
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    with tempfile.TemporaryDirectory() as folder, report.report_at_end(args) as result:
        args.work_dir = folder
        cli.start_tensorflow(args.verbose)
        decoding.write_model(args, for_ctranslate2=PEER in args.only)
        measure(args, result["tables"])


def measure(args: Namespace, tables: Result) -> None:
    """Times all programs; `tables` gets their speeds and ratios."""
    from t2t_repro.fast import int8_matmul
    from t2t_repro.fast.thresholds import few_sentences
    from t2t_repro.models import precision

    contenders = {n: c for n, c in CONTENDERS.items() if c[0] in args.only}
    reasons = {"int8": int8_matmul.unsupported_reason()}
    reasons["bfloat16"] = precision.unsupported_reason("bfloat16")
    for name, (task, fields) in list(contenders.items()):
        if task == OURS and (reason := reasons.get(fields["precision"])):
            say(f"skipping {name}: {reason}")
            del contenders[name]
        elif (backend := fields.get("backend")) and not find_spec(backend):
            say(f"skipping {name}: {backend} is not installed")
            del contenders[name]
    processes = [
        keras_hub_search.contender(name, vars(args) | fields, fields["backend"])
        if task == HUB
        else own(name, TASKS[task], vars(args) | fields)
        for name, (task, fields) in contenders.items()
    ]
    # As in `translate`, a process with few sentences uses its cores differently.
    for_few = {
        name: (
            own(name, TASKS[OURS], vars(args) | contenders[name][1] | {"xla": None}),
            max(together, per_core * usable_cores()),
        )
        for name in (FLOAT32, INT8)
        if name in contenders
        for together, per_core in [few_sentences(name == INT8)]
    }
    others = contenders.keys() - SMALL
    title = "beam search"
    for _ in decoding.time_workloads(
        args, processes, tables, title, PAIRS, others, for_few
    ):
        pass


def parse(argv: Sequence[str] | None) -> Namespace:
    """Parses the flags."""
    alpha = cli.float_range(0, MOST_ALPHA)
    programs = several(choice((*TASKS, HUB)))
    parser = report.parser(
        __doc__,
        ("batches", cli.int_range(1), 4, "number of batches in parallel"),
        ("alpha", alpha, 0.6, "exponent of the length penalty"),
        ("only", programs, ",".join(TASKS), "programs, separated by commas"),
    )
    args = decoding.check_flags(parser, argv, vocab_size=8000)
    args.small_batches = (16, 8, 4, 2)
    return args


if __name__ == "__main__":
    cli.run(main)
