"""Trains a Transformer by the paper's whole procedure.

It prepares the data, trains, averages the last checkpoints and scores the test split.
The same command resumes after an interruption.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from t2t_repro import hparams, problems
from t2t_repro.command_line import cli, vocabulary_flags
from t2t_repro.command_line.data_flags import add_data_flags, add_validation_flags
from t2t_repro.hparams import HParams
from t2t_repro.hparams.listing import describe_hparams
from t2t_repro.problems.corpora import parse_corpora
from t2t_repro.problems.problem import Problem
from t2t_repro.runs.run_metadata import META_FILE, check_accepted
from t2t_repro.system.errors import UserError
from t2t_repro.training.compile_cache import compile_cache

if TYPE_CHECKING:
    from t2t_repro.training.run import Run


def _parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser(__doc__)
    parser.add_argument(
        "--hparams",
        type=cli.path,
        required=True,
        help="name or YAML file of a hyper-parameter set, and overrides: "
        f"big,warmup_steps=8000 (sets: {', '.join(hparams.names())})",
    )
    parser.add_argument(
        "--list_hparams",
        action=_ListHParams,
        nargs="?",
        metavar="NAME",
        help="print the default, values and meaning of all hyper-parameters, or of "
        "one, and exit",
    )
    add_data_flags(parser, problems.names(), required=False)
    parser.add_argument(
        "--model_dir",
        type=cli.path,
        help="model directory (default: models/SET.PROBLEM)",
    )
    parser.add_argument(
        "--init_from",
        type=cli.path,
        metavar="MODEL",
        help="model whose weights and vocabulary a new training starts from, at step "
        "0: a model directory, a checkpoint in one, or a folder of Marian, "
        "Transformers, OpenNMT-tf or tensor2tensor (default: random weights)",
    )
    vocabulary_flags.add_vocabulary_flags(parser)
    add_validation_flags(parser)
    parser.add_argument(
        "--accept_changes",
        default="",
        help="comma-separated changes to accept when training resumes: data, "
        "vocabulary, problem, or names of hyper-parameters",
    )
    parser.add_argument(
        "--train_steps",
        type=cli.int_range(1),
        help="total number of training steps (default: the set's)",
    )
    _add_device_flags(parser)
    cli.add_fast_flag(parser)
    parser.add_argument(
        "--profile",
        type=_step_range,
        metavar="FIRST[:LAST]",
        help="range of steps to trace for TensorBoard's profiler, e.g. 20:25",
    )
    return parser


def _add_device_flags(parser: cli.ArgumentParser) -> None:
    """Adds the flags that depend on the devices and on the number of processes."""
    parser.add_argument(
        "--precision",
        choices=("auto", "float32", "bfloat16", "float16"),
        help="precision of matmuls and activations; auto: bfloat16 on a GPU that "
        "supports it, else float32 (default: the set's)",
    )
    parser.add_argument(
        "--xla",
        nargs="?",
        const="true",
        choices=("auto", "true", "false"),
        help="compile loss and gradient with XLA; auto: on a GPU that supports "
        "bfloat16, if the steps left save more time than compilation takes (default: "
        "the set's)",
    )
    parser.add_argument(
        "--compile_cache",
        type=cli.path,
        metavar="DIR",
        help="folder in which XLA keeps compiled programs and its choices of kernels "
        "for later runs (default: none)",
    )
    parser.add_argument(
        "--deterministic",
        action="store_true",
        help="make GPU runs reproducible bit by bit, and runs on 1, 2, 4 and 8 devices "
        "of the same kind equal bit by bit, at lower speed",
    )
    parser.add_argument(
        "--strategy",
        default="auto",
        help="distribution strategy: auto, one_device, mirrored (all GPUs of this "
        "machine) or multi_worker",
    )
    parser.add_argument(
        "--replicas",
        type=cli.int_range(0),
        default=0,
        help="number of GPUs, or of virtual CPUs without a GPU, for --strategy "
        "mirrored (default: all GPUs)",
    )
    parser.add_argument(
        "--communication",
        choices=("auto", "nccl", "ring"),
        default="auto",
        help="all-reduce implementation for --strategy multi_worker; auto: nccl on "
        "GPUs, ring (gRPC) on CPUs",
    )


class _ListHParams(argparse.Action):
    """Flag that prints the hyper-parameters and exits, like --help."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        """Prints all hyper-parameters, or the one that the flag names."""
        assert values is None or isinstance(values, str)
        try:
            print(describe_hparams(values), flush=True)
        except UserError as error:
            raise argparse.ArgumentError(self, str(error)) from None
        parser.exit()


def _step_range(text: str) -> tuple[int, int]:
    """Parses a range of steps, 20 or 20:25, both ends included."""
    first, colon, last = text.partition(":")
    ends = (first, last if colon else first)
    numbers = [int(end) if end.isascii() and end.isdigit() else 0 for end in ends]
    if not 1 <= numbers[0] <= numbers[1]:
        raise argparse.ArgumentTypeError(
            f"must be a step or a range of steps, such as 20 or 20:25, not {text!r}"
        )
    return numbers[0], numbers[1]


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs the whole procedure and prints the scores."""
    args = _parser().parse_args(argv)
    given = hparams.load_given(args.hparams, "--hparams")
    accepted = check_accepted(filter(None, args.accept_changes.split(",")))
    flags = {
        "train_steps": args.train_steps,
        "problem": args.problem,
        "precision": args.precision,
        "xla": {"true": True, "false": False}.get(args.xla, args.xla),
    }
    given |= {name: value for name, value in flags.items() if value is not None}
    settings = HParams(**given)
    vocabulary_flags.check(args)
    if settings.problem is None:
        raise UserError(
            f"--problem is missing: {args.hparams} names none; give --problem files to "
            "train on your own text"
        )
    data_dir = args.data_dir or settings.data_dir or "data"
    languages = args.source_lang, args.target_lang
    corpora = parse_corpora(data_dir, settings.problem, *languages)
    if corpora:
        data_dir, problem = corpora[-1].name, corpora[-1].problem
    else:
        problem = problems.create(settings.problem, data_dir, *languages)
    with contextlib.ExitStack() as stack:
        if args.compile_cache:
            stack.enter_context(
                compile_cache(
                    Path(args.compile_cache),
                    functools.partial(print, file=_stream(args), flush=True),
                    args.deterministic,
                )
            )
        run = _run(args, given, problem, data_dir, accepted)
        shard_dir = Path(args.shard_dir) if args.shard_dir else None
        run = dataclasses.replace(run, corpora=corpora, shard_dir=shard_dir)
        from t2t_repro.training.procedure import train_and_score

        result = train_and_score(run)
    if result is None:
        raise KeyboardInterrupt
    from t2t_repro.evaluation.split_scores import format_scores

    text = f"the model is in {run.model_dir.path}"
    figures = format_scores(result)
    if figures is not None:
        text = f"{figures}\non {result['split']}\n{text}"
    cli.print_result(text, result, args.json)


def _stream(args: argparse.Namespace) -> TextIO:
    """Returns the console for progress; with --json, standard output has the result."""
    return sys.stderr if args.json else sys.stdout


def _run(
    args: argparse.Namespace,
    given: Mapping[str, Any],
    problem: Problem,
    data_dir: str,
    accepted: frozenset[str],
) -> Run:
    """Starts TensorFlow and returns the settings of the training run."""
    cli.start_models(args.verbose, args.no_fast)
    from t2t_repro.runs.model_dir import ModelDir
    from t2t_repro.training import devices, strategy
    from t2t_repro.training.guard import make_guard
    from t2t_repro.training.origin import VOCABULARY, choose_start
    from t2t_repro.training.run import Run
    from t2t_repro.training.validation_sets import parse_sets
    from t2t_repro.training.vocabulary_change import check_replaceable, extend_origin

    if args.deterministic:
        devices.compute_the_same_bits()
    used_set = Path(hparams.split_spec(args.hparams)[0])
    name = f"{used_set.stem}.{problem.name.replace(':', '.')}"
    model_dir = ModelDir(Path(args.model_dir or f"models/{name}"))
    log = functools.partial(print, file=_stream(args), flush=True)
    init_from = Path(args.init_from) if args.init_from else None
    vocab_file = Path(args.vocab_file) if args.vocab_file else None
    guard = guarded = None
    if args.guard is not None:
        guard = make_guard(args.guard, args.guard_tolerance, problem, data_dir)
        guarded = guard.fingerprint
    replaces = args.vocab == "replace"
    own_file, free = (None, VOCABULARY) if replaces else (vocab_file, ())
    start = choose_start(given, init_from, model_dir, own_file, log, guarded, free)
    origin = start.origin
    if replaces and origin is not None:
        origin = check_replaceable(origin, start.hparams, vocab_file)
    if args.vocab == "extend":
        vocab_file = None  # It is that of the first model.
        if origin is not None:
            words = args.vocab_tokens, args.vocab_words
            origin = extend_origin(origin, *words, problem, log)
    return Run(
        hparams=start.hparams,
        problem=problem,
        data_dir=Path(data_dir),
        model_dir=model_dir,
        strategy=strategy.choose(
            args.strategy,
            args.replicas,
            args.communication,
            start.hparams.xla is True,
            log,
        ),
        stream=_stream(args),
        vocab_file=vocab_file,
        accepted=accepted,
        profiled=args.profile or (0, 0),
        keeps_programs=args.compile_cache is not None,
        deterministic=args.deterministic,
        other_model=other_model(used_set, model_dir.path),
        origin=origin,
        guard=guard,
        origin_record=start.record,
        validation_sets=parse_sets(args.validation, problem, data_dir),
    )


def other_model(used_set: Path, model_dir: Path) -> Path | None:
    """Returns the directory of the model whose set is used, unless it is trained."""
    folder = used_set.parent
    is_file = used_set.suffix in (".yaml", ".yml")
    if not is_file or not (folder / META_FILE).exists():
        return None
    return None if folder.resolve() == model_dir.resolve() else folder


if __name__ == "__main__":
    cli.run(main)
