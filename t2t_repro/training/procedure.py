"""The paper's whole procedure: prepare, train, average, translate, score."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TextIO

import tensorflow as tf

from t2t_repro.batches import pipeline
from t2t_repro.batches.batching import BatchingConfig, plan_epoch
from t2t_repro.data.prepared_data import PreparedData, fingerprint, prepare
from t2t_repro.data.skipped_pairs import (
    SKIPPED_PAIRS_FILE,
    line_numbers,
    read_skipped_pairs,
    too_long,
)
from t2t_repro.evaluation.split_scores import evaluate, hypotheses_wanted, kind_of_score
from t2t_repro.hparams import HParams
from t2t_repro.hparams.fields import CPU_DEFAULTS
from t2t_repro.models.precision import check_precision, mixed_precision
from t2t_repro.models.transformer import Transformer
from t2t_repro.models.variables import named_variables
from t2t_repro.problems.problem import Problem
from t2t_repro.runs import checkpoint_rotation
from t2t_repro.runs.averaging import average_checkpoints
from t2t_repro.runs.checkpoints import list_checkpoints
from t2t_repro.runs.model_dir import ModelDir, build_model
from t2t_repro.runs.run_metadata import RunMetadata
from t2t_repro.system.atomic_file import write_text_atomically
from t2t_repro.system.errors import UserError
from t2t_repro.training import devices
from t2t_repro.training import strategy as strategies
from t2t_repro.training.loop import TrainingLoop, Validate
from t2t_repro.training.monitor import TENSORBOARD, Monitor, validation_table
from t2t_repro.training.profiler import Profile
from t2t_repro.training.validation import ValidationLoss
from t2t_repro.training.workers import Workers
from t2t_repro.translation.loading import search_of
from t2t_repro.translation.translator import Translator

VALIDATION_SENTENCES = 500


@dataclass(frozen=True)
class Run:
    """Everything that one training needs to know."""

    hparams: HParams
    problem: Problem
    data_dir: Path  # Of vocabulary and shards.
    model_dir: ModelDir
    strategy: tf.distribute.Strategy
    stream: TextIO  # Where progress is told.
    vocab_file: Path | None = None  # None: the model's, if given or imported.
    accepted: frozenset[str] = frozenset()  # May differ; see `check_accepted`.
    profiled: tuple[int, int] = (0, 0)  # First, last update to trace; 0: none.

    def log(self, line: str) -> None:
        """Tells a line at once."""
        print(line, file=self.stream, flush=True)


def train_and_score(run: Run, data_dir_given: str | None) -> dict[str, Any] | None:
    """Runs the procedure from wherever it stands; returns what ``result.json`` gets.

    That has no score where the last step lies within the warm-up. None: the training
    was asked to stop before its last step. `data_dir_given` is remembered for later
    commands. Raises UserError if the data, the directory or the numbers are not usable.
    """
    provenance = RunMetadata(
        problem=run.problem.name,
        source_lang=run.problem.source_lang,
        target_lang=run.problem.target_lang,
        data_dir=data_dir_given and str(Path(data_dir_given).resolve()),
        problem_fingerprint=run.problem.fingerprint(),
        vocabulary_fingerprint="",
    )
    # Nothing is left to the device: what the training began with, or is chosen now.
    hparams, chosen = devices.resolve_auto(
        run.hparams,
        run.model_dir.hparams() if run.model_dir.exists() else None,
        run.accepted,
        run.strategy.num_replicas_in_sync,
        devices.gpus(),
    )
    check_precision(hparams.precision)
    run = replace(run, hparams=hparams)
    run.model_dir.check(run.hparams, provenance, run.accepted)
    for line in chosen:
        run.log(line)
    # Unusable test data is noticed here, not when days of training are over.
    fingerprints = {
        "train": provenance.problem_fingerprint or "",
        "test": fingerprint(run.problem, "test"),
    }
    vocab_file = run.vocab_file or run.model_dir.given_vocabulary(run.accepted)
    data = prepare(
        run.problem,
        run.hparams,
        run.data_dir,
        run.log,
        vocab_file=vocab_file,
        fingerprints=fingerprints,
    )
    provenance = replace(
        provenance,
        vocabulary_fingerprint=data.tokenizer.fingerprint,
        vocabulary_given=vocab_file is not None,
    )
    with _begun(run, provenance, data) as run:
        model = _build(run, data, run.hparams.precision)
        loop = TrainingLoop(
            model,
            run.hparams,
            run.strategy,
            run.model_dir.checkpoint_dir,
            strategies.is_chief(run.strategy),
        )
        if not _train(run, data, model, loop):
            return None
        if loop.is_chief:
            if run.hparams.precision != "float32":
                # As every other command translates with it.
                model = _build(run, data, "float32")
            result = _average_and_score(run, data, model, fingerprints["test"])
        else:
            result = {"problem": run.problem.name, "steps": loop.step}
            run.log("the chief averages the checkpoints and scores")
        loop.workers.wait()
        return result


def _build(run: Run, data: PreparedData, precision: str) -> Transformer:
    with run.strategy.scope(), mixed_precision(precision):
        sizes = data.tokenizer.vocab_size, data.tokenizer.target_vocab_size
        return build_model(run.hparams, *sizes)


@contextmanager
def _begun(run: Run, provenance: RunMetadata, data: PreparedData) -> Iterator[Run]:
    """Describes the model, and keeps a second training out; both are the chief's.

    What the chief's device decided holds for the others, so they wait for it.
    """
    workers = Workers(run.strategy)
    if not strategies.is_chief(run.strategy):
        workers.wait()
        kept = run.model_dir.hparams()
        chosen = {name: getattr(kept, name) for name in CPU_DEFAULTS}
        run = replace(run, hparams=run.hparams.replace(**chosen))
        run.model_dir.check(run.hparams, provenance, run.accepted)
        yield run
        return
    run.model_dir.make()
    with run.model_dir.locked(run.log):
        run.model_dir.begin(run.hparams, provenance, data.tokenizer, run.accepted)
        workers.wait()
        yield run


def batching_of(hparams: HParams) -> BatchingConfig:
    """Returns how batches are made, wherever the training runs."""
    rows_multiple = hparams.resolve_auto().rows_multiple
    assert isinstance(rows_multiple, int)
    return BatchingConfig(
        tokens_per_batch=hparams.tokens_per_batch,
        kind=hparams.batching,
        max_length=hparams.max_length,
        tokens_per_part=hparams.tokens_per_part,
        rows_multiple=rows_multiple,
    )


def _train(
    run: Run, data: PreparedData, model: Transformer, loop: TrainingLoop
) -> bool:
    """Trains to the last step; says whether it got there."""
    hparams, log, chief = run.hparams, run.log, loop.is_chief
    config = batching_of(hparams)
    log(strategies.describe(run.strategy))
    start = loop.restore(log)
    if loop.workers.any(chief and _is_done(run, start)):
        log(
            f"reusing the training in {run.model_dir.path}: {start:,} steps are done; "
            "a larger --train_steps trains on"
        )
        return True
    plan = plan_epoch(data.train.lengths, config, hparams.seed, 0)
    log(f"an epoch: {plan.summary()}")
    if chief:
        _list_skipped_pairs(run, data, config)
    if start:
        log(f"going on from step {start:,} in {run.model_dir.path}")
    if start == hparams.train_steps:
        log("no update is left; a larger --train_steps trains on")
    monitor = Monitor(
        run.model_dir.path if chief else None,
        hparams.train_steps,
        start,
        run.stream,
        loop.unreported,
        figure=kind_of_score(run.problem.target_lang).figure.lower(),
    )
    not_encoded = read_skipped_pairs(data.directory / "train")

    def lines_of(step: int) -> Iterable[int]:
        pairs = pipeline.pair_numbers(data.train, config, hparams.seed, step)
        return line_numbers(pairs, not_encoded)

    own = loop.workers.own_parts
    done = loop.run(
        lambda step: pipeline.batches(data.train, config, hparams.seed, step, own),
        monitor,
        _validation(run, data, model, loop, monitor),
        lines_of,
        Profile(run.model_dir.path / TENSORBOARD, *(run.profiled if chief else ())),
    )
    if not done:
        log(f"stopped at step {loop.step:,}, all is saved; the same command goes on")
    return done


def _is_done(run: Run, start: int) -> bool:
    """Says whether the training reached its end, and its last validation."""
    last = run.hparams.train_steps
    if start != last:
        return start > last
    return start in validation_table(run.model_dir.path).steps()


def _list_skipped_pairs(run: Run, data: PreparedData, config: BatchingConfig) -> None:
    """Writes a line for every pair of the text that is not used, and says so."""
    rows = []
    for split, pairs, longest in (
        ("train", data.train, config.longest_usable),
        ("val", data.val, pipeline.LONGEST_EVALUATED),
    ):
        not_encoded = read_skipped_pairs(data.directory / split)
        long = too_long(pairs.lengths, longest, not_encoded)
        found = sorted([*not_encoded, *long])
        rows += [f"{split}\t{line}\t{reason}" for line, reason in found]
    path = run.model_dir.path / SKIPPED_PAIRS_FILE
    text = "".join(f"{row}\n" for row in ("split\tline\treason", *rows))
    write_text_atomically(path, text)
    if rows:
        run.log(f"{len(rows):,} pairs are not used; {path} lists them")


def _validation(
    run: Run,
    data: PreparedData,
    model: Transformer,
    loop: TrainingLoop,
    monitor: Monitor,
) -> Validate:
    hparams, log, workers = run.hparams, run.log, loop.workers
    config = batching_of(hparams)
    validation_loss = ValidationLoss(model, workers)
    search = search_of(hparams, data.tokenizer, beam_size=1)
    translator = Translator(model, data.tokenizer, search)
    sample = _first(run.problem, "val", VALIDATION_SENTENCES)

    def validate(step: int) -> None:
        batches = pipeline.eval_batches(data.val, config, workers.number, workers.count)
        loss = validation_loss(batches)
        if not loop.is_chief:
            return
        told = f"step {step:,}: validation loss {loss:.4f}"
        reached = None
        if not _still_warming_up(hparams, step):
            found, _ = evaluate(
                translator, sample, run.problem.target_lang, show_progress=False
            )
            reached = found.value
            told += (
                f", greedy {found.figure} {reached:.2f} of {len(sample):,} sentences"
            )
            checkpoint_rotation.keep_best(
                run.model_dir.best_dir,
                hparams.keep_best_checkpoints,
                step,
                loop.weights,
                reached,
            )
        monitor.validated(step, loss, reached)
        log(told)

    return validate


def _average_and_score(
    run: Run, data: PreparedData, model: Transformer, test_fingerprint: str
) -> dict[str, Any]:
    """Averages the last checkpoints, scores the test split, writes the result."""
    directory, hparams, log = run.model_dir, run.hparams, run.log
    # An imported model, of before the first update, is no part of the average.
    found = [c for c in list_checkpoints(directory.checkpoint_dir) if c.step]
    last = found[-min(hparams.average_last, len(found)) :]
    steps = [checkpoint.step for checkpoint in last]
    wanted = {
        "steps": steps[-1],
        "averaged_steps": steps,
        "beam_size": hparams.beam_size,
        "alpha": hparams.alpha,
        "decode_extra_length": hparams.decode_extra_length,
        "test_fingerprint": test_fingerprint,
    }
    if hparams.search != HParams.search:
        names = ("search", "word_penalty", "decode_length_factor", "allow_unknown")
        wanted |= {name: getattr(hparams, name) for name in names}
    scored = {field.name for field in fields(kind_of_score(run.problem.target_lang))}
    earlier = _earlier_result(directory, wanted, scored)
    if earlier is not None:
        log(f"reusing the score in {directory.result_file}")
        return earlier
    which = "checkpoints of steps" if len(steps) > 1 else "checkpoint of step"
    log(f"averaging the {which} {', '.join(map(str, steps))}")
    averaged = average_checkpoints(last, directory.averaged_dir)
    if _still_warming_up(hparams, steps[-1]):
        log(
            f"not scored: {steps[-1]:,} steps are fewer than the "
            f"{hparams.warmup_steps:,} of the warm-up (python -m t2t_repro.evaluate "
            "scores any model)"
        )
        return {"problem": run.problem.name, "checkpoint": "averaged", **wanted}
    averaged.tensors().assign_to(named_variables(model))
    pairs = list(run.problem.pairs("test"))
    log(f"translating {run.problem.description('test')}")
    nbest = hypotheses_wanted(run.problem.target_lang, hparams.beam_size)
    search = search_of(hparams, data.tokenizer, nbest=nbest)
    translator = Translator(model, data.tokenizer, search)
    reached, _ = evaluate(translator, pairs, run.problem.target_lang)
    result = {
        "problem": run.problem.name,
        "split": run.problem.description("test"),
        "checkpoint": "averaged",
        **wanted,
        **reached.to_dict(),
    }
    write_text_atomically(directory.result_file, json.dumps(result, indent=2) + "\n")
    return result


def _still_warming_up(hparams: HParams, step: int) -> bool:
    """Says if a model is so young that it would babble up to the limit, for hours."""
    return step < hparams.warmup_steps


def _earlier_result(
    directory: ModelDir, wanted: dict[str, Any], scored: set[str]
) -> dict[str, Any] | None:
    """Returns an earlier result if it is of all that is `wanted`, or None."""
    try:
        found = json.loads(directory.result_file.read_text(encoding="utf-8"))
        averaged = directory.checkpoint("averaged").meta()["averaged_steps"]
    except (OSError, ValueError, KeyError, UserError):
        return None
    # The average may have been made anew by hand, from other checkpoints.
    if not isinstance(found, dict) or averaged != wanted["averaged_steps"]:
        return None
    whole = scored <= found.keys() and wanted.items() <= found.items()
    return found if whole else None


def _first(problem: Problem, split: str, count: int) -> list[tuple[str, str]]:
    """Returns the first pairs of a split; raises UserError if it is empty."""
    pairs = [pair for _, pair in zip(range(count), problem.pairs(split), strict=False)]
    if not pairs:
        raise UserError(f"{problem.name}: the {split} split is empty")
    return pairs
