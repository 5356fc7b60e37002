"""Scoring of the averaged model on the test split."""

import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

from t2t_repro.data.prepared_data import PreparedData
from t2t_repro.evaluation.bleu import select_tokenizer
from t2t_repro.evaluation.references import describe_empty_references
from t2t_repro.evaluation.split_scores import (
    evaluate,
    num_hypotheses,
    select_score_class,
)
from t2t_repro.hparams import HParams
from t2t_repro.models.transformer import Transformer
from t2t_repro.models.variables import named_variables
from t2t_repro.runs.averaging import average_checkpoints, write_moving_average
from t2t_repro.runs.checkpoints import Checkpoint
from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.system.atomic_file import write_text_atomically
from t2t_repro.training.run import Run
from t2t_repro.training.selection import (
    select_checkpoints,
    select_guarded,
)
from t2t_repro.training.validator import is_warming_up
from t2t_repro.translation.build import build_translator
from t2t_repro.translation.loading import Loaded
from t2t_repro.translation.options import TranslationOptions


def average_and_score(
    run: Run, data: PreparedData, model: Transformer, test_fingerprint: str | None
) -> dict[str, Any]:
    """Averages the last checkpoints, scores the test split and writes the result.

    An existing result with the same settings is reused. Without test text, or if the
    model is still warming up, it is averaged but not scored.

    Args:
        run: Settings of the run.
        data: Prepared data.
        model: Model whose weights are replaced by the average.
        test_fingerprint: Fingerprint of the test split; None without test text.

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
    if is_warming_up(run, steps[-1]) or test_fingerprint is None:
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
