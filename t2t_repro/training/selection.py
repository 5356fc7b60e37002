"""Selection of the checkpoints that are averaged at the end of a training."""

from collections.abc import Sequence
from typing import TypeVar

from t2t_repro.models.transformer import Transformer
from t2t_repro.models.variables import named_variables
from t2t_repro.runs.checkpoint_rotation import rank_checkpoints
from t2t_repro.runs.checkpoints import Checkpoint, checkpoints_to_average
from t2t_repro.tokenizers.tokenizer import Tokenizer
from t2t_repro.training.guard import Guard, GuardedChoice, choose
from t2t_repro.training.monitor import read_validations, validation_table
from t2t_repro.training.progress import find_best
from t2t_repro.training.run import Run
from t2t_repro.translation.build import build_translator
from t2t_repro.translation.loading import Loaded
from t2t_repro.translation.options import TranslationOptions

VALIDATION_SENTENCES = 500
"""Number of pairs that a validation translates."""

_Item = TypeVar("_Item")


def select_evenly(items: Sequence[_Item], most: int) -> list[_Item]:
    """Returns at most `most` items at equal distances; files may be sorted by length.

    The first item is one of them. The result depends on nothing else.
    """
    if len(items) <= most:
        return list(items)
    return [items[number * len(items) // most] for number in range(most)]


def select_checkpoints(run: Run) -> list[Checkpoint]:
    """Returns the checkpoints to average, oldest first.

    These are the last ones; with early stopping or a guard, the last ones up to the
    best eligible validation.
    """
    directory, hparams = run.model_dir, run.hparams
    saved = checkpoints_to_average(directory.checkpoint_dir)
    guard = run.guard
    if hparams.ema_decay:
        return saved[-1:]
    if not hparams.early_stopping and guard is None:
        return saved[-hparams.average_last :]
    table = validation_table(directory.path, guarded=guard is not None)
    validations = read_validations(table, saved[-1].step)
    tolerance = guard.tolerance if guard else None
    best = find_best(validations, hparams.validation_metric, tolerance)
    if best is None:
        return saved[-hparams.average_last :]
    if best.step == 0:
        return [Checkpoint(directory.origin_dir, 0)]
    selected = {each.step: each for each in saved if each.step <= best.step}
    for each in rank_checkpoints(directory.best_dir):
        if each.step == best.step:
            selected.setdefault(each.step, each)
    chosen = [selected[step] for step in sorted(selected)]
    if guard is not None and not chosen:
        # `--guard_tolerance` has been reduced since the checkpoints were deleted.
        return [Checkpoint(directory.origin_dir, 0)]
    return (chosen or saved)[-hparams.average_last :]


def select_guarded(
    run: Run, guard: Guard, tokenizer: Tokenizer, model: Transformer
) -> GuardedChoice:
    """Selects the weights of a training with a guard, and logs a table of the scores.

    The candidates are the average of the best eligible checkpoint with the ones before
    it, this checkpoint alone, and the weights that the training started from.

    Args:
        run: Settings of the run.
        guard: Guard of the run.
        tokenizer: Tokenizer of the model.
        model: Model, whose weights are replaced by the selected ones.
    """
    last, origin = select_checkpoints(run), Checkpoint(run.model_dir.origin_dir, 0)
    candidates = [last, last[-1:]] if len(last) > 1 else [last]
    if last != [origin]:
        candidates.append([origin])
    loaded = Loaded([model], tokenizer, run.hparams, [], [])
    validation, guarded = (
        select_evenly(list(problem.pairs("val")), VALIDATION_SENTENCES)
        for problem in (run.problem, guard.problem)
    )
    choice = choose(
        candidates,
        build_translator(loaded, TranslationOptions()),
        named_variables(model),
        validation,
        guarded,
        run.problem.target_lang,
        guard.tolerance,
    )
    for line in choice.table():
        run.log(line)
    if choice.is_origin:
        run.log(
            "no checkpoint is significantly better on the validation split (p < 0.05) "
            f"and loses at most {guard.tolerance:g} on the guard: the result is the "
            "model that the training started from"
        )
    return choice
