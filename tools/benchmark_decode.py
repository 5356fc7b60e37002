"""Times beam search beside CTranslate2: same weights, same sentences, in turn.

    python tools/benchmark_decode.py [--rounds 3] [--only t2t_repro,...]

A model of random weights translates random sentences in exactly `--steps` steps each,
so that both do the same work. It counts tokens of the best hypotheses per second: with
many batches at hand, one batch at a time, one sentence at a time. Each program uses all
cores as it does best: t2t_repro runs batches side by side, a core each, once more as
`translate --xla` does, and once with one decoder layer, as a student has it; of
CTranslate2 the better of batches side by side and one batch over all cores counts.

The matrix products of the steps alone are the limit. What t2t_repro translates in
float32 is compared with a plain search without caches. CTranslate2 must be installed
(`pip install ctranslate2`), or left out by `--only t2t_repro,products`.
"""

import os
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks import decoding
from benchmarks.in_turn import in_turn, own, printed
from benchmarks.machine import Result, machine, machine_lines, say
from flags import one_of, several

from t2t_repro import fast
from t2t_repro.command_line import cli
from t2t_repro.hparams.fields import MOST_ALPHA

OURS, PEER, LIMIT = "t2t_repro", "ctranslate2", "products"
FLOAT32, XLA = f"{OURS} float32", f"{OURS} float32, XLA"
INT8 = f"{OURS} int8"
BFLOAT16 = f"{OURS} bfloat16"
BFLOAT16_LIMIT = "products bfloat16"
STUDENT = f"{OURS} float32, 1 decoder layer"
CONTENDERS: dict[str, tuple[str, Result]] = {
    FLOAT32: (OURS, {"precision": "float32", "xla": False}),
    XLA: (OURS, {"precision": "float32", "xla": True}),
    BFLOAT16: (OURS, {"precision": "bfloat16", "xla": False}),
    INT8: (OURS, {"precision": "int8", "xla": False}),
    STUDENT: (OURS, {"precision": "float32", "xla": False, "num_decoder_layers": 1}),
    "CTranslate2 float32": (PEER, {"compute_type": "float32"}),
    "CTranslate2 int8": (PEER, {"compute_type": "int8"}),
    "products float32": (LIMIT, {"precision": "float32"}),
    BFLOAT16_LIMIT: (LIMIT, {"precision": "bfloat16"}),
}
# What is compared with what.
PAIRS = (
    (FLOAT32, "CTranslate2 float32"),
    (XLA, "CTranslate2 float32"),
    (BFLOAT16, "CTranslate2 int8"),
    (INT8, "CTranslate2 int8"),
    (INT8, "CTranslate2 float32"),
    (INT8, FLOAT32),
    (STUDENT, FLOAT32),
    (FLOAT32, "products float32"),
    (BFLOAT16, BFLOAT16_LIMIT),
)


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs the programs in turn and prints what they reached."""
    args = _parse(argv)
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    result: Result = {"machine": machine(), "settings": vars(args), "contenders": {}}
    with tempfile.TemporaryDirectory() as folder, printed(result, table, args.json):
        args.work_dir = folder
        cli.start_tensorflow(args.verbose)
        decoding.write_model(args)
        translated = measure(args, result["contenders"])
        if args.checked:
            result["plain_search"] = {
                name: {
                    "checked": len(ids[: args.checked]),
                    "same": decoding.same_as_plain(args, ids[: args.checked]),
                }
                for name, ids in translated.items()
            }


def measure(args: Namespace, found: Result) -> dict[str, list[list[int]]]:
    """Times all works of all contenders; returns ids that t2t_repro found in float32.

    `found` gets each contender's tokens a second by work, start and memory.
    """
    from t2t_repro.fast import int8_matmul
    from t2t_repro.models import precision

    contenders = {n: c for n, c in CONTENDERS.items() if c[0] in args.only}
    for each in args.without:
        name = f"{FLOAT32} without {each}"
        contenders[name] = (OURS, CONTENDERS[FLOAT32][1] | {"without": [each]})
    reasons = {INT8: int8_matmul.unsupported_reason()}
    reasons |= dict.fromkeys(
        (BFLOAT16, BFLOAT16_LIMIT), precision.unsupported_reason("bfloat16")
    )
    for name, reason in reasons.items():
        if reason and contenders.pop(name, None):
            say(f"without {name}: {reason}")
    works = decoding.works_of(args)
    timed = [work for work in works if work not in decoding.BEGIN]
    translated = {}
    for name, work, answer in in_turn(
        [
            own(name, f"decoding.{task}", vars(args) | told)
            for name, (task, told) in contenders.items()
        ],
        [timed] * args.rounds,
        Path(args.work_dir),
        begin=decoding.BEGIN,
        one_by_one=True,
    ):
        one = found.setdefault(name, {"start_seconds": [], "peak_memory": 0})
        one["peak_memory"] = max(one["peak_memory"], answer["memory"])
        if work == timed[0]:
            one["start_seconds"].append(answer["start_seconds"])
        tokens = works[work][..., 0].size * args.steps
        speeds = one.setdefault("tokens_per_second", {}).setdefault(work, [])
        speeds.append(tokens / answer["seconds"])
        say(f"  round {len(speeds)}: {name}, {work}: {speeds[-1]:,.0f} tokens/s")
        # It is another search for sentences alone only.
        if (name, work) in ((FLOAT32, timed[0]), (XLA, decoding.SENTENCE)):
            translated[name] = [ids for call in answer["ids"] for ids in call]
    return translated


def table(result: Result) -> str:
    """Writes the result for people: medians of the rounds, ratios of medians."""
    found = result["contenders"]
    wide = max(map(len, found), default=0)
    without = [name for name in found if name.startswith(f"{FLOAT32} without ")]
    lines = [*machine_lines(result["machine"]), ""]
    speeds: dict[str, dict[str, list[float]]] = {}
    for name, one in found.items():
        lines.append(
            f"{name:{wide}}  {one['peak_memory'] / 2**20:6,.0f} MiB at most, "
            f"{median(one['start_seconds']):5.1f} s until the first batch is done"
        )
        for work, each in one["tokens_per_second"].items():
            speeds.setdefault(work, {})[name] = each
    for work, by_name in speeds.items():
        lines += ["", f"{work}, tokens/s (median; each round):"]
        for name, each in by_name.items():
            told = ", ".join(f"{speed:,.0f}" for speed in each)
            lines.append(f"  {name:{wide}}  {median(each):8,.0f}  ({told})")
        medians = {name: median(each) for name, each in by_name.items()}
        lines += [
            f"  {ours} / {theirs}: {medians[ours] / medians[theirs]:.2f}"
            for ours, theirs in (*PAIRS, *((FLOAT32, name) for name in without))
            if ours in medians and theirs in medians
        ]
    for name, each in result.get("plain_search", {}).items():
        lines += [
            "",
            f"{name}: {each['same']} of {each['checked']} translations are those of a "
            "plain search without caches",
        ]
    return "\n".join(lines)


def _parse(argv: Sequence[str] | None) -> Namespace:
    parser = cli.ArgumentParser(
        "Times beam search beside CTranslate2 on the same weights and machine."
    )
    add, count = parser.add_argument, cli.at_least(1)
    for name, default, text in (
        ("d_model", 512, "channels; heads of 64, d_ff 4 times"),
        ("num_layers", 6, "layers of each stack"),
        ("vocab_size", 8000, "subwords"),
        ("length", 32, "subwords of a sentence, EOS included"),
        ("steps", 52, "subwords of a translation"),
        ("batch_size", 32, "sentences of a batch"),
        ("batches", 4, "batches at hand"),
        ("sentences", 4, "sentences translated alone"),
        ("beam_size", 4, "hypotheses per sentence"),
        ("rounds", 3, "how often all run, in turn"),
    ):
        add(f"--{name}", type=count, default=default, help=text)
    add(
        "--alpha",
        type=cli.between(0, MOST_ALPHA),
        default=0.6,
        help="of the length penalty",
    )
    add("--checked", type=cli.at_least(0), default=4, help="translations to check")
    add("--seed", type=cli.at_least(0), default=1, help="of weights and sentences")
    add(
        "--only",
        type=several(one_of((OURS, PEER, LIMIT))),
        default=f"{OURS},{PEER},{LIMIT}",
        help="programs, with commas between",
    )
    add(
        "--without",
        type=several(one_of(fast.NAMES)),
        default="",
        help="optimized implementations without each of which t2t_repro is timed once "
        "more in float32, with commas between",
    )
    args: Namespace = parser.parse_args(argv)
    if args.steps < args.length:
        parser.error("--steps must be at least --length")
    if args.d_model % 64:
        parser.error("--d_model must be a multiple of 64")
    return args


if __name__ == "__main__":
    cli.run(main)
