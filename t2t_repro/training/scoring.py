"""Scoring of a training: validations, and the averaged model on the test split."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from typing import Any

from t2t_repro.batches import pipeline
from t2t_repro.batches.batching import BatchingConfig
from t2t_repro.data.prepared_data import PreparedData
from t2t_repro.evaluation.bleu import select_tokenizer
from t2t_repro.evaluation.references import describe_empty_references
from t2t_repro.evaluation.split_scores import (
    chrf,
    evaluate,
    num_hypotheses,
    select_score_class,
)
from t2t_repro.hparams import HParams
from t2t_repro.models.transformer import Transformer
from t2t_repro.models.variables import named_variables
from t2t_repro.runs.averaging import average_checkpoints, write_moving_average
from t2t_repro.runs.checkpoint_rotation import (
    BLEU,
    CHRF,
    LOSS,
    keep_best,
    rank_checkpoints,
)
from t2t_repro.runs.checkpoints import Checkpoint
from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.system.atomic_file import write_text_atomically
from t2t_repro.system.errors import UserError
from t2t_repro.training.monitor import Monitor
from t2t_repro.training.progress import Validation, is_eligible, stops_early
from t2t_repro.training.run import Run
from t2t_repro.training.selection import (
    VALIDATION_SENTENCES,
    select_checkpoints,
    select_evenly,
    select_guarded,
)
from t2t_repro.training.validation import ValidationLoss
from t2t_repro.training.workers import Workers
from t2t_repro.translation.build import build_translator
from t2t_repro.translation.loading import Loaded
from t2t_repro.translation.options import TranslationOptions


def validation(
    run: Run,
    data: PreparedData,
    model: Transformer,
    config: BatchingConfig,
    workers: Workers,
    monitor: Monitor,
    identity: str,
) -> Callable[[int], bool]:
    """Returns a function that validates the model, given the number of steps.

    It computes the loss of the validation split, with different batches on each worker.
    After the warm-up, the chief also scores greedy translations of at most
    `VALIDATION_SENTENCES` pairs, see `select_evenly`, and saves the best weights. It
    does not compare them with weights that were validated on other pairs; `identity`
    identifies the split. The function returns whether training stops early.

    Raises:
        UserError: The validation split is empty.
    """
    best_dir, most = run.model_dir.best_dir, run.hparams.keep_best_checkpoints
    weights = named_variables(model)
    validation_loss = ValidationLoss(model, workers)
    loaded = Loaded([model], data.tokenizer, run.hparams, [], [])
    translator = build_translator(loaded, TranslationOptions(beam_size=1))
    pairs = list(run.problem.pairs("val"))
    sample = select_evenly(pairs, VALIDATION_SENTENCES)
    if not sample:
        raise UserError(
            f"{run.problem.name}: the val split is empty; it needs at least one pair"
        )
    references = [target for _, target in sample]
    tokenizer = select_tokenizer(run.problem.target_lang, references)
    if tokenizer.note and not workers.number:
        run.log(tokenizer.note)
    if len(sample) < len(pairs):
        # Earlier versions translated the first pairs.
        identity += " evenly"
    metric = run.hparams.validation_metric
    key = {"chrf": CHRF, "loss": LOSS}.get(metric, BLEU)
    if key != BLEU:
        identity += f" {metric}"
    if tokenizer.name != "13a":
        # The package of another tokenizer may be installed before a resumption.
        identity += f" {tokenizer.name}"
    if any(best.data not in (None, identity) for best in rank_checkpoints(best_dir)):
        run.log(
            "the validation sentences or the tokenizer of BLEU have changed, so "
            f"{best_dir} starts over"
        )

    guard_sample: list[tuple[str, str]] = []
    tolerance = None
    if run.guard is not None:
        most, tolerance = max(most, 1), run.guard.tolerance
        guard_pairs = list(run.guard.problem.pairs("val"))
        guard_sample = select_evenly(guard_pairs, VALIDATION_SENTENCES)
    number = f"{len(sample):,}"
    if len(sample) < len(pairs):
        number += f" of {len(pairs):,}"

    def validate(step: int) -> bool:
        batches = pipeline.eval_batches(data.val, config, workers.number, workers.count)
        loss = validation_loss(batches)
        if workers.number > 0:  # Not the chief.
            return False
        message = f"step {step:,}: validation loss {loss:.4f}"
        value = guarded = None
        if not is_warming_up(run, step):
            score, translations = evaluate(
                translator, sample, run.problem.target_lang, show_progress=False
            )
            figure, value = score.figure, score.value
            if metric == "chrf":
                texts = [translation.text for translation in translations]
                figure, value = "chrF", chrf(texts, references)
            message += f", greedy {figure} {value:.2f} on {number} sentences"
        if guard_sample:
            score, _ = evaluate(
                translator, guard_sample, run.problem.target_lang, show_progress=False
            )
            guarded = score.value
            message += f", guard {score.figure} {guarded:.2f}"
        this = Validation(step, loss, value, guarded)
        first = next(iter(monitor.validations()), this)
        eligible = is_eligible(this, first, tolerance)
        best = loss if metric == "loss" else value
        if best is not None and eligible:
            keep_best(best_dir, most, step, weights, best, identity, key)
        monitor.record_validation(*this)
        run.log(message if eligible else f"{message} (rejected by the guard)")
        reason = stops_early(
            monitor.validations(), metric, run.hparams.early_stopping, tolerance
        )
        if reason is not None:
            run.log(reason)
        return reason is not None

    return validate


def score_name(run: Run) -> str:
    """Returns the name of the validation score in logs, in lower case.

    Raises UserError if `validation_metric` does not suit the targets.
    """
    target_lang, metric = run.problem.target_lang, run.hparams.validation_metric
    name = select_score_class(target_lang).figure.lower()
    if metric != "chrf":
        return name
    if name == "f1":
        raise UserError(
            "validation_metric=chrf: trees are scored with F1; use bleu, which stands "
            "for it, or loss"
        )
    return metric


def is_warming_up(run: Run, step: int) -> bool:
    """Returns whether translation after a step would run to the length limit.

    During the warm-up, a model that started from random weights rarely emits EOS.
    """
    return run.origin_record is None and step < run.hparams.warmup_steps


def average_and_score(
    run: Run, data: PreparedData, model: Transformer, test_fingerprint: str
) -> dict[str, Any]:
    """Averages the last checkpoints, scores the test split and writes the result.

    An existing result with the same settings is reused. A model that is still warming
    up is averaged but not scored.

    Args:
        run: Settings of the run.
        data: Prepared data.
        model: Model whose weights are replaced by the average.
        test_fingerprint: Fingerprint of the test split.

    Returns:
        The contents of ``result.json``.
    """
    directory, hparams, log = run.model_dir, run.hparams, run.log
    last = select_checkpoints(run)
    settings: dict[str, Any] = {
        "beam_size": hparams.beam_size,
        "alpha": hparams.alpha,
        "decode_extra_length": hparams.decode_extra_length,
        "test_fingerprint": test_fingerprint,
    }
    if run.guard is None:
        settings = _describe_steps(last) | settings
    else:
        # The guard may reject checkpoints, so their steps are not known yet.
        settings["guard_set"] = {
            "fingerprint": run.guard.fingerprint,
            "tolerance": run.guard.tolerance,
            "selected_from": [checkpoint.step for checkpoint in last],
        }
    if hparams.ema_decay:
        settings["ema_decay"] = hparams.ema_decay
    if hparams.search != HParams.search:
        names = ("search", "word_penalty", "decode_length_factor", "allow_unknown")
        settings |= {name: getattr(hparams, name) for name in names}
    # Earlier versions scored every language with the tokenizer 13a.
    tokenizer = select_tokenizer(run.problem.target_lang).name
    if tokenizer != "13a":
        settings["bleu_tokenizer"] = tokenizer
    score_fields = {f.name for f in fields(select_score_class(run.problem.target_lang))}
    earlier = _earlier_result(directory, settings, score_fields, last[-1].data)
    if earlier is not None:
        log(f"reusing the score in {directory.result_file}")
        return earlier
    if run.guard is not None:
        choice = select_guarded(run, run.guard, data.tokenizer, model)
        last = choice.checkpoints
        settings |= _describe_steps(last) | {"guard": choice.to_dict()}
    steps = settings["averaged_steps"]
    if hparams.ema_decay:
        log(f"writing the moving average of the weights after step {steps[-1]}")
        averaged = write_moving_average(last[-1], directory.averaged_dir)
    else:
        which = "checkpoints of steps" if len(steps) > 1 else "checkpoint of step"
        log(f"averaging the {which} {', '.join(map(str, steps))}")
        averaged = average_checkpoints(last, directory.averaged_dir)
    if is_warming_up(run, steps[-1]):
        log(
            f"not scored: {steps[-1]:,} steps are fewer than the "
            f"{hparams.warmup_steps:,} warm-up steps (python -m t2t_repro.evaluate "
            "scores any model)"
        )
        return {"problem": run.problem.name, "checkpoint": "averaged", **settings}
    averaged.tensors().assign(named_variables(model))
    pairs = list(run.problem.pairs("test"))
    log(f"scoring on {run.problem.description('test')}")
    if note := describe_empty_references([[target for _, target in pairs]]):
        log(note)
    nbest = num_hypotheses(run.problem.target_lang, hparams.beam_size)
    loaded = Loaded([model], data.tokenizer, hparams, [directory], [])
    translator = build_translator(loaded, TranslationOptions(nbest=nbest))
    score, _ = evaluate(translator, pairs, run.problem.target_lang)
    result = {
        "problem": run.problem.name,
        "split": run.problem.description("test"),
        "checkpoint": "averaged",
        **settings,
        **asdict(score),
    }
    if run.origin_record is not None:
        result["origin"] = run.origin_record
    write_text_atomically(directory.result_file, json.dumps(result, indent=2) + "\n")
    return result


def _describe_steps(checkpoints: Sequence[Checkpoint]) -> dict[str, Any]:
    """Returns the steps of the averaged checkpoints for ``result.json``."""
    steps = [checkpoint.step for checkpoint in checkpoints]
    return {"steps": steps[-1], "averaged_steps": steps}


def _earlier_result(
    directory: ModelDir,
    settings: dict[str, Any],
    score_fields: set[str],
    data: str | None,
) -> dict[str, Any] | None:
    """Returns the existing result if its settings are equal and it is complete.

    Otherwise, or if the average is of other data, returns None.
    """
    result = directory.result()
    if result is None or directory.checkpoint("averaged").data not in (None, data):
        return None
    valid = score_fields <= result.keys() and settings.items() <= result.items()
    return result if valid else None
