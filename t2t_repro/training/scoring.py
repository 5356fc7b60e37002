"""How a training is scored: at each validation, and with the average at its end."""

import json
from collections.abc import Callable
from dataclasses import fields
from itertools import islice
from typing import Any

from t2t_repro.batches import pipeline
from t2t_repro.batches.batching import BatchingConfig
from t2t_repro.data.prepared_data import PreparedData
from t2t_repro.evaluation.split_scores import evaluate, kind_of_score, num_hypotheses
from t2t_repro.hparams import HParams
from t2t_repro.models.transformer import Transformer
from t2t_repro.models.variables import named_variables
from t2t_repro.runs import checkpoint_rotation
from t2t_repro.runs.averaging import average_checkpoints
from t2t_repro.runs.checkpoints import list_checkpoints
from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.system.atomic_file import write_text_atomically
from t2t_repro.system.errors import UserError
from t2t_repro.training import strategy as strategies
from t2t_repro.training.monitor import Monitor
from t2t_repro.training.run import Run
from t2t_repro.training.validation import ValidationLoss
from t2t_repro.training.workers import Workers
from t2t_repro.translation.loading import search_of
from t2t_repro.translation.translator import Translator

VALIDATION_SENTENCES = 500


def validation(
    run: Run,
    data: PreparedData,
    model: Transformer,
    config: BatchingConfig,
    workers: Workers,
    monitor: Monitor,
) -> Callable[[int], None]:
    """Returns a function that validates the model after so many steps.

    It computes the loss of the validation split, of which each worker takes its own
    batches. After the warm-up the chief also scores greedy translations of the first
    `VALIDATION_SENTENCES` pairs, and keeps the best weights.
    """
    hparams, is_chief = run.hparams, strategies.is_chief(run.strategy)
    weights = named_variables(model)
    validation_loss = ValidationLoss(model, workers)
    search = search_of(hparams, data.tokenizer, beam_size=1)
    translator = Translator(model, data.tokenizer, search)
    sample = list(islice(run.problem.pairs("val"), VALIDATION_SENTENCES))
    if not sample:
        raise UserError(f"{run.problem.name}: the val split is empty")

    def validate(step: int) -> None:
        batches = pipeline.eval_batches(data.val, config, workers.number, workers.count)
        loss = validation_loss(batches)
        if not is_chief:
            return
        message = f"step {step:,}: validation loss {loss:.4f}"
        reached = None
        if not _still_warming_up(hparams, step):
            score, _ = evaluate(
                translator, sample, run.problem.target_lang, show_progress=False
            )
            reached = score.value
            message += (
                f", greedy {score.figure} {reached:.2f} of {len(sample):,} sentences"
            )
            checkpoint_rotation.keep_best(
                run.model_dir.best_dir,
                hparams.keep_best_checkpoints,
                step,
                weights,
                reached,
            )
        monitor.validated(step, loss, reached)
        run.log(message)

    return validate


def average_and_score(
    run: Run, data: PreparedData, model: Transformer, test_fingerprint: str
) -> dict[str, Any]:
    """Averages the last checkpoints, scores the test split, writes the result."""
    directory, hparams, log = run.model_dir, run.hparams, run.log
    # An imported model, of before the first update, is no part of the average.
    trained = [c for c in list_checkpoints(directory.checkpoint_dir) if c.step]
    last = trained[-hparams.average_last :]
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
    nbest = num_hypotheses(run.problem.target_lang, hparams.beam_size)
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
        result = json.loads(directory.result_file.read_text(encoding="utf-8"))
        averaged = directory.checkpoint("averaged").meta()["averaged_steps"]
    except (OSError, ValueError, KeyError, UserError):
        return None
    # The average may have been made anew by hand, from other checkpoints.
    if not isinstance(result, dict) or averaged != wanted["averaged_steps"]:
        return None
    whole = scored <= result.keys() and wanted.items() <= result.items()
    return result if whole else None
