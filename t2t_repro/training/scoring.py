"""Scoring of the averaged model on the test split."""

import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

from t2t_repro.data.prepared_data import PreparedData
from t2t_repro.evaluation.bleu import select_tokenizer
from t2t_repro.evaluation.references import describe_empty_references
from t2t_repro.evaluation.split_scores import (
    AnyScore,
    evaluate,
    num_hypotheses,
    select_score_class,
)
from t2t_repro.hparams import HParams
from t2t_repro.models.transformer import Transformer
from t2t_repro.models.variables import named_variables
from t2t_repro.runs.averaging import average_checkpoints, write_moving_average
from t2t_repro.runs.checkpoints import Checkpoint
from t2t_repro.system.atomic_file import write_text_atomically
from t2t_repro.tokenizers.tokenizer import Tokenizer
from t2t_repro.training.run import Run
from t2t_repro.training.selection import select_checkpoints, select_guarded
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
    directory = run.model_dir
    last = select_checkpoints(run)
    settings = _describe_settings(run, last, test_fingerprint)
    earlier = _earlier_result(run, settings, last[-1].data)
    if earlier is not None:
        run.log(f"reusing the score in {directory.result_file}")
        return earlier
    if run.guard is not None:
        choice = select_guarded(run, run.guard, data.tokenizer, model)
        last = choice.checkpoints
        settings |= _describe_steps(last) | {"guard": choice.to_dict()}
    averaged = _average(run, last)
    warms_up = is_warming_up(run, last[-1].step)
    if warms_up:
        run.log(
            f"not scored: {last[-1].step:,} steps are fewer than the "
            f"{run.hparams.warmup_steps:,} warm-up steps (python -m "
            "t2t_repro.evaluate scores any model)"
        )
    if warms_up or test_fingerprint is None:
        return {"problem": run.problem.name, "checkpoint": "averaged", **settings}
    averaged.tensors().assign(named_variables(model))
    result = {
        "problem": run.problem.name,
        "split": run.problem.description("test"),
        "checkpoint": "averaged",
        **settings,
        **asdict(_score(run, data.tokenizer, model)),
    }
    if run.origin_record is not None:
        result["origin"] = run.origin_record
    write_text_atomically(directory.result_file, json.dumps(result, indent=2) + "\n")
    return result


def _describe_settings(
    run: Run, checkpoints: Sequence[Checkpoint], test_fingerprint: str | None
) -> dict[str, Any]:
    """Returns the settings in ``result.json`` that determine the score."""
    hparams = run.hparams
    settings: dict[str, Any] = {
        "beam_size": hparams.beam_size,
        "alpha": hparams.alpha,
        "decode_extra_length": hparams.decode_extra_length,
        "test_fingerprint": test_fingerprint,
    }
    if run.guard is None:
        settings = _describe_steps(checkpoints) | settings
    else:
        # The guard may reject checkpoints, so their steps are not known yet.
        settings["guard_set"] = {
            "fingerprint": run.guard.fingerprint,
            "tolerance": run.guard.tolerance,
            "selected_from": [checkpoint.step for checkpoint in checkpoints],
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
    return settings


def _average(run: Run, checkpoints: Sequence[Checkpoint]) -> Checkpoint:
    """Writes the averaged checkpoint of the model directory."""
    steps, directory = [each.step for each in checkpoints], run.model_dir.averaged_dir
    if run.hparams.ema_decay:
        run.log(f"writing the moving average of the weights after step {steps[-1]}")
        return write_moving_average(checkpoints[-1], directory)
    which = "checkpoints of steps" if len(steps) > 1 else "checkpoint of step"
    run.log(f"averaging the {which} {', '.join(map(str, steps))}")
    return average_checkpoints(checkpoints, directory)


def _score(run: Run, tokenizer: Tokenizer, model: Transformer) -> AnyScore:
    """Translates the test split and returns its scores."""
    pairs, language = list(run.problem.pairs("test")), run.problem.target_lang
    run.log(f"scoring on {run.problem.description('test')}")
    if note := describe_empty_references([[target for _, target in pairs]]):
        run.log(note)
    nbest = num_hypotheses(language, run.hparams.beam_size)
    loaded = Loaded([model], tokenizer, run.hparams, [run.model_dir], [])
    translator = build_translator(loaded, TranslationOptions(nbest=nbest))
    score, _ = evaluate(translator, pairs, language)
    return score


def _describe_steps(checkpoints: Sequence[Checkpoint]) -> dict[str, Any]:
    """Returns the steps of the averaged checkpoints for ``result.json``."""
    steps = [checkpoint.step for checkpoint in checkpoints]
    return {"steps": steps[-1], "averaged_steps": steps}


def _earlier_result(
    run: Run, settings: dict[str, Any], data: str | None
) -> dict[str, Any] | None:
    """Returns the existing result if its settings are equal and it is complete.

    Otherwise, or if the average is of other data, returns None.
    """
    result = run.model_dir.result()
    if result is None or run.model_dir.checkpoint("averaged").data not in (None, data):
        return None
    score = fields(select_score_class(run.problem.target_lang))
    complete = {field.name for field in score} <= result.keys()
    return result if complete and settings.items() <= result.items() else None
