"""The paper's whole procedure: prepare, train, average, translate, score."""

import contextlib
import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TextIO

import tensorflow as tf

from t2t_repro.data import pipeline
from t2t_repro.data.batching import BatchingConfig, plan_epoch
from t2t_repro.errors import UserError
from t2t_repro.hparams import HParams
from t2t_repro.loading import translator_of
from t2t_repro.model_dir import ModelDir, Provenance, build_model
from t2t_repro.models.transformer import Transformer, named_variables
from t2t_repro.prepared_data import PreparedData, fingerprint, prepare
from t2t_repro.problems.problem import Problem
from t2t_repro.scoring import Score, score
from t2t_repro.text_files import write_text_atomically
from t2t_repro.training import strategy as strategies
from t2t_repro.training.averaging import average_checkpoints
from t2t_repro.training.checkpoints import list_checkpoints
from t2t_repro.training.loop import TrainingLoop
from t2t_repro.training.monitor import Monitor
from t2t_repro.training.validation import ValidationLoss

VALIDATION_SENTENCES = 500


@dataclass(frozen=True)
class Run:
    """Everything that one training needs to know.

    Attributes:
        hparams: the resolved set.
        problem: the corpus.
        data_dir: where vocabulary and shards are kept.
        model_dir: where the model goes.
        strategy: where it trains.
        stream: where progress is told.
        vocab_file: use this vocabulary instead of building one; None takes the
            model's own where that was given too, or imported.
    """

    hparams: HParams
    problem: Problem
    data_dir: Path
    model_dir: ModelDir
    strategy: tf.distribute.Strategy
    stream: TextIO
    vocab_file: Path | None = None

    def say(self, line: str) -> None:
        """Tells a line at once."""
        print(line, file=self.stream, flush=True)


def train_and_score(run: Run, data_dir_given: str | None) -> dict[str, Any] | None:
    """Runs the procedure from wherever it stands to its result.

    Args:
        run: what to train, and where.
        data_dir_given: the data directory as the problem was given it, to be
            remembered for later commands.

    Returns:
        The result, as written to ``result.json``, without a score where the last
        step lies within the warm-up; None if the training was asked to stop before
        its last step.

    Raises:
        UserError: the data, the directory or the numbers are not usable.
    """
    run.model_dir.check_hparams(run.hparams)
    # Unusable test data is noticed here, not when days of training are over.
    test_fingerprint = fingerprint(run.problem, "test")
    vocab_file = run.vocab_file or run.model_dir.given_vocabulary()
    data = prepare(
        run.problem, run.hparams, run.data_dir, run.say, vocab_file=vocab_file
    )
    run.model_dir.begin(
        run.hparams,
        Provenance(
            problem=run.problem.name,
            source_lang=run.problem.source_lang,
            target_lang=run.problem.target_lang,
            data_dir=data_dir_given and str(Path(data_dir_given).resolve()),
            problem_fingerprint=run.problem.fingerprint(),
            vocabulary_fingerprint=data.tokenizer.fingerprint,
            vocabulary_given=vocab_file is not None,
        ),
        data.tokenizer,
    )
    with run.strategy.scope():
        model = build_model(run.hparams, data.tokenizer.vocab_size)
    with _alone(run):
        if not _train(run, data, model):
            return None
        return _average_and_score(run, data, model, test_fingerprint)


def _alone(run: Run) -> contextlib.AbstractContextManager[None]:
    """Keeps a second training out of the model directory; workers share one."""
    if not strategies.is_chief(run.strategy):
        return contextlib.nullcontext()
    return run.model_dir.locked()


def batching_of(hparams: HParams, replicas: int) -> BatchingConfig:
    """Returns how batches are made under some number of replicas."""
    return BatchingConfig(
        tokens_per_batch=hparams.tokens_per_batch,
        kind=hparams.batching,
        max_length=hparams.max_length,
        rows_multiple=replicas,
    )


def _train(run: Run, data: PreparedData, model: Transformer) -> bool:
    """Trains to the last step; says whether it got there."""
    hparams, say = run.hparams, run.say
    config = batching_of(hparams, run.strategy.num_replicas_in_sync)
    chief = strategies.is_chief(run.strategy)
    loop = TrainingLoop(
        model, hparams, run.strategy, run.model_dir.checkpoint_dir, chief
    )
    say(strategies.describe(run.strategy))
    start = loop.restore(say)
    if start >= hparams.train_steps:
        say(f"reusing the training in {run.model_dir.path}: {start:,} steps are done")
        return True
    plan = plan_epoch(data.train.lengths, config, hparams.seed, 0)
    say(f"an epoch: {plan.summary()}")
    if start:
        say(f"going on from step {start:,} in {run.model_dir.path}")
    monitor = Monitor(
        run.model_dir.path if chief else None, hparams.train_steps, start, run.stream
    )
    validation_loss = ValidationLoss(model)
    translator = translator_of(model, data.tokenizer, hparams, beam_size=1)
    sample = _first(run.problem, "val", VALIDATION_SENTENCES)

    def validate(step: int) -> None:
        if not chief:
            return
        loss = validation_loss(pipeline.eval_batches(data.val, config))
        monitor.scalars(step, {"val_loss": loss})
        if _still_warming_up(hparams, step):
            say(f"step {step:,}: validation loss {loss:.4f}")
            return
        found, _ = score(
            translator, sample, run.problem.target_lang, show_progress=False
        )
        say(
            f"step {step:,}: validation loss {loss:.4f}, greedy BLEU {found.bleu:.2f} "
            f"of {len(sample):,} sentences"
        )
        monitor.scalars(step, {"val_greedy_bleu": found.bleu})

    done = loop.run(
        lambda step: pipeline.batches(data.train, config, hparams.seed, step),
        monitor,
        validate,
        lambda step: pipeline.pair_numbers(data.train, config, hparams.seed, step),
    )
    if not done:
        say(f"stopped at step {loop.step:,}, all is saved; the same command goes on")
    return done


def _average_and_score(
    run: Run, data: PreparedData, model: Transformer, test_fingerprint: str
) -> dict[str, Any]:
    """Averages the last checkpoints, scores the test split, writes the result."""
    directory, hparams, say = run.model_dir, run.hparams, run.say
    found = list_checkpoints(directory.checkpoint_dir)
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
    earlier = _earlier_result(directory, wanted)
    if earlier is not None:
        say(f"reusing the score in {directory.result_file}")
        return earlier
    say(f"averaging the checkpoints of steps {', '.join(map(str, steps))}")
    averaged = average_checkpoints(last, directory.averaged_dir)
    if _still_warming_up(hparams, steps[-1]):
        say(
            f"not scored: {steps[-1]:,} steps are fewer than the "
            f"{hparams.warmup_steps:,} of the warm-up (python -m t2t_repro.evaluate "
            "scores any model)"
        )
        return {"problem": run.problem.name, "checkpoint": "averaged", **wanted}
    averaged.tensors().assign_to(named_variables(model))
    pairs = list(run.problem.pairs("test"))
    say(f"translating {run.problem.description('test')}")
    translator = translator_of(model, data.tokenizer, hparams)
    reached, _ = score(translator, pairs, run.problem.target_lang)
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
    """Says whether a model is too young to be worth translating with.

    It would babble up to the length limit for every sentence: with the big model on
    a small machine, hours for a score of zero.
    """
    return step < hparams.warmup_steps


def _earlier_result(
    directory: ModelDir, wanted: dict[str, Any]
) -> dict[str, Any] | None:
    """Returns the result of an earlier run if that did the very same, or None."""
    try:
        found = json.loads(directory.result_file.read_text(encoding="utf-8"))
        averaged = directory.checkpoint("averaged").meta()["averaged_steps"]
    except (OSError, ValueError, KeyError, UserError):
        return None
    # The average may have been made anew by hand, from other checkpoints.
    if not isinstance(found, dict) or averaged != wanted["averaged_steps"]:
        return None
    whole = {field.name for field in fields(Score)} <= found.keys()
    return found if whole and wanted.items() <= found.items() else None


def _first(problem: Problem, split: str, count: int) -> list[tuple[str, str]]:
    """Returns the first pairs of a split.

    Raises:
        UserError: the split is empty.
    """
    pairs = [pair for _, pair in zip(range(count), problem.pairs(split), strict=False)]
    if not pairs:
        raise UserError(f"{problem.name}: the {split} split is empty")
    return pairs
