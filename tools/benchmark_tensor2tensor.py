"""Times t2t_repro beside the real tensor2tensor: same text, same machine, in turn.

    python tools/benchmark_tensor2tensor.py --t2t_python t2t-venv/bin/python
        --data_dir multi30k --vocab_file spm6k.model --model_dir models/multi30k

There are two parts (`--only` takes one). Training: both take the same batches in the
same order; t2t_repro makes them meanwhile, tensor2tensor gets them ready. It counts
non-padding target tokens per second after the first `--measure_from` steps, without
validation and checkpoints.

Translation: both search the same sentences, ids to ids, in the same batches with the
same weights; the first batch runs once before the clock starts.

Every run is a process of its own, alone, with TensorFlow's own choice of threads and no
GPU. tensor2tensor's environment is Python 3.7 with tensorflow 1.15.5 and tensor2tensor
1.15.7.
"""

import json
import os
import platform
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.in_turn import in_turn, own, peer, peer_versions, printed
from benchmarks.machine import Result, machine, machine_lines, say

import t2t_repro
from t2t_repro.command_line import cli
from t2t_repro.hparams.fields import MOST_ALPHA
from t2t_repro.system.errors import UserError

OURS, THEIRS = "t2t_repro", "tensor2tensor"
NEEDED = {"train": "vocab_file", "translate": "model_dir"}
LAST_STEPS = 50  # Whose mean loss is told.


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs the parts and prints what they took."""
    args = _parse(argv)
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    theirs = peer_versions(args.t2t_python, "--t2t_python", THEIRS, "tensorflow")
    cli.start_tensorflow(args.verbose)
    import tensorflow as tf

    ours = f"{OURS} {t2t_repro.__version__}, tensorflow {tf.__version__}, Python "
    versions = [ours + platform.python_version(), theirs]
    result: Result = {"machine": machine(), "versions": versions}
    with tempfile.TemporaryDirectory() as temporary, printed(result, table, args.json):
        args.work_dir = str(Path(args.work_dir or temporary).resolve())
        Path(args.work_dir).mkdir(parents=True, exist_ok=True)
        for part in [args.only] if args.only else NEEDED:
            result[part] = {"settings": vars(args), "rounds": {OURS: [], THEIRS: []}}
            {"train": train, "translate": translate}[part](args, result[part])


def train(args: Namespace, part: Result) -> None:
    """Times training; `part` gets what is known at any moment."""
    from benchmarks.same_text import write_batches

    work = write_batches(args, args.steps)
    last: dict[str, Result] = {}
    rounds = [[args.steps - args.measure_from]] * args.rounds
    for name, answer in _in_turn("train", args, work, [args.measure_from], rounds):
        answer["tokens"] = answer["target_tokens"]
        last[name] = answer
        if len({each["tokens"] for each in last.values()}) > 1:
            raise UserError("the programs were given other batches")
        part["losses"] = {
            name: float(np.mean(each["losses"][-LAST_STEPS:]))
            for name, each in last.items()
        }
        _count(part, name, answer)


def translate(args: Namespace, part: Result) -> None:
    """Times translation and compares what comes out; `part` as in `train`."""
    from benchmarks.same_text import write_sentences

    work, sentences = write_sentences(args)
    last: dict[str, Result] = {}
    batches = -(-sentences // args.batch_size)
    for name, answer in _in_turn(
        "translate", args, work, [1], [[batches]] * args.rounds
    ):
        answer["ids"] = [np.trim_zeros(row, "b") for row in answer["ids"]]
        answer["tokens"] = sum(map(len, answer["ids"]))
        last[name] = answer
        if len(last) == 2:
            part |= compare(last[OURS], last[THEIRS])
        _count(part, name, answer)


def _in_turn(
    task: str, args: Namespace, work: Result, begin: Sequence[int], rounds: Any
) -> Any:
    """Runs both programs in turn, each alone; yields who and the answer."""
    pair = [
        own(OURS, f"same_text.{task}", vars(args)),
        peer(THEIRS, args.t2t_python, "tensor2tensor_speed.py", json.dumps(work)),
    ]
    folder = Path(args.work_dir)
    for name, _, answer in in_turn(pair, rounds, folder, begin=begin, one_by_one=True):
        yield name, answer


def _count(part: Result, name: str, answer: Result) -> None:
    """Adds a run to a part: its tokens, seconds, and how much faster ours is by now."""
    one = {key: answer[key] for key in ("tokens", "seconds", "start_seconds")}
    one["tokens_per_second"] = one["tokens"] / one["seconds"]
    part["rounds"][name].append(one)
    say(f"  {name} {one['tokens_per_second']:,.0f} tokens/s")
    seconds = [sum(e["seconds"] for e in part["rounds"][n]) for n in (THEIRS, OURS)]
    if len({len(runs) for runs in part["rounds"].values()}) == 1:
        part["ratio"] = seconds[0] / seconds[1]


def compare(ours: Result, theirs: Result) -> Result:
    """Compares translations of the same sentences: `ids` without padding, and `scores`.

    Returns the number of `sentences`, how many are `identical` in all ids, and the
    largest difference of scores among these (None: there are none) and among all.
    """
    pairs = zip(ours["ids"], theirs["ids"], strict=True)
    identical = np.array([list(one) == list(other) for one, other in pairs])
    differences = np.abs(np.subtract(ours["scores"], theirs["scores"]))
    among = differences[identical]
    return {
        "sentences": len(identical),
        "identical": int(identical.sum()),
        "largest_score_difference": float(among.max()) if len(among) else None,
        "largest_score_difference_of_all": float(differences.max()),
    }


def table(result: Result) -> str:
    """Writes the result for people."""
    lines = machine_lines(result["machine"]) + result["versions"]
    if "train" in result:
        lines += ["", *_train_lines(result["train"])]
    if "translate" in result:
        lines += ["", *_translate_lines(result["translate"])]
    return "\n".join(lines)


def _train_lines(part: Result) -> list[str]:
    flags = part["settings"]
    losses = [f"{name} {loss:.4f}" for name, loss in part.get("losses", {}).items()]
    return [
        f"Training {flags['hparams']}, steps {flags['measure_from'] + 1} to "
        f"{flags['steps']} of the same batches, non-padding target tokens:",
        *_round_lines(part),
        "  outside the clock: imports, graph and the steps before",
        f"  mean loss of the last steps: {', '.join(losses)} (other random draws)",
    ]


def _translate_lines(part: Result) -> list[str]:
    flags = part["settings"]
    extra = flags["extra_length"]
    lines = [
        f"Translating {flags['test_file']} by the {flags['checkpoint']} checkpoint, "
        f"longest first, batch {flags['batch_size']}, beam {flags['beam_size']}, alpha "
        f"{flags['alpha']}:",
        *_round_lines(part),
        "  outside the clock: imports, graph, weights and the first batch once",
        f"  limit of a translation: {OURS} its own input + {extra}, {THEIRS} the "
        f"batch's padded input + {extra}",
    ]
    if "identical" in part:
        difference = part["largest_score_difference"]
        among = "" if difference is None else f"{difference:.1e} among these, "
        lines.append(
            f"  identical: {part['identical']:,} of {part['sentences']:,}; largest "
            f"difference of scores: {among}"
            f"{part['largest_score_difference_of_all']:.1e} among all"
        )
    return lines


def _round_lines(part: Result) -> list[str]:
    """Writes the rounds as a table, and the ratio of all."""
    lines = ["  round  program          seconds  tokens/s  outside the clock, s"]
    for name, runs in part["rounds"].items():
        lines += [
            f"  {number:5}  {name:13}  {one['seconds']:9.2f}  "
            f"{one['tokens_per_second']:8,.0f}  {one['start_seconds']:20.1f}"
            for number, one in enumerate(runs, 1)
        ]
    if "ratio" in part:
        lines.append(
            f"  {OURS} is {part['ratio']:.2f} times as fast, all rounds together"
        )
    return lines


def _parse(argv: Sequence[str] | None) -> Namespace:
    parser = cli.ArgumentParser(
        "Times t2t_repro beside the real tensor2tensor on the same text and machine."
    )
    add, count = parser.add_argument, cli.at_least(1)
    add("--t2t_python", required=True, help="Python 3.7 that has tensor2tensor 1.15.7")
    add("--data_dir", required=True, help="folder of the texts (Multi30k)")
    add("--source_lang", default="en", help="ending of the source files")
    add("--target_lang", default="de", help="ending of the target files")
    add("--test_file", default="test_2016_flickr.en", help="to translate, in data_dir")
    add("--only", choices=tuple(NEEDED), help="one of the two parts")
    add("--rounds", type=count, default=1, help="how often both run, in turn")
    add("--work_dir", help="keep what the programs read and write here")
    add("--hparams", default="multi30k", help="training: the set, with any overrides")
    add("--vocab_file", help="training: the vocabulary")
    add("--steps", type=count, default=600, help="training: updates in all")
    add(
        "--measure_from",
        type=cli.at_least(0),
        default=100,
        help="training: updates not timed",
    )
    add("--model_dir", help="translation: a trained model")
    add("--checkpoint", default="best", help="translation: see t2t_repro.translate")
    add("--batch_size", type=count, default=32, help="translation: sentences at once")
    add("--beam_size", type=count, default=4, help="translation: hypotheses")
    add(
        "--alpha",
        type=cli.between(0, MOST_ALPHA),
        default=0.6,
        help="translation: of the length penalty",
    )
    add("--extra_length", type=count, default=50, help="translation: limit over input")
    args: Namespace = parser.parse_args(argv)
    for part, flag in NEEDED.items():
        if args.only in (None, part) and getattr(args, flag) is None:
            parser.error(f"--{flag} is needed to {part}")
    if args.measure_from >= args.steps:
        parser.error("--measure_from must be from 0 to --steps - 1")
    return args


if __name__ == "__main__":
    cli.run(main)
