"""Lines that a training run prints before its first step."""

import math
from collections.abc import Iterator, Mapping

import keras

from t2t_repro.models.variables import find_frozen
from t2t_repro.runs.run_metadata import ORIGIN_KEYS
from t2t_repro.system.errors import UserError, format_count
from t2t_repro.training.run import Run

MOST_EPOCHS = 200
"""Number of epochs above which a run prints a warning."""

_ADVISED_EPOCHS = 50  # Small corpora were trained well with about as many.


def describe_epochs(steps: int, batches: int) -> Iterator[str]:
    """Yields a line with the number of epochs, and a warning if it is large.

    Args:
        steps: Number of remaining steps.
        batches: Number of batches in an epoch; each of them is a step.
    """
    epochs = steps / batches
    number = f"{epochs:,.0f}" if epochs >= 10 else f"{epochs:.1f}"
    yield f"{format_count(steps, 'step')}: {number} epochs"
    if epochs > MOST_EPOCHS:
        yield (
            f"warning: more than {MOST_EPOCHS} epochs take long and overfit; reduce "
            f"--train_steps, for example to {_ADVISED_EPOCHS * batches} "
            f"({_ADVISED_EPOCHS} epochs)"
        )


def describe_frozen(
    weights: Mapping[str, keras.Variable], freeze: str | None
) -> Iterator[str]:
    """Yields a line with the weights that training does not change, if there are any.

    Args:
        weights: All weights by name.
        freeze: The hyper-parameter.
    """
    frozen = find_frozen(weights, freeze)
    if frozen:
        count, every = (
            sum(math.prod(weights[name].shape) for name in names)
            for names in (frozen, weights)
        )
        yield (
            f"frozen: {len(frozen)} of {len(weights)} weights with {count:,} of "
            f"{every:,} numbers (freeze: {freeze})"
        )


def describe_missing_text(run: Run) -> Iterator[str]:
    """Yields a line for each missing split with the stages that the run omits.

    Raises UserError if a hyper-parameter needs the split.
    """
    if not run.problem.has("val"):
        if patience := run.hparams.early_stopping:
            raise UserError(
                f"early_stopping={patience} needs validation text, but the data have "
                "no val.* files; add them, or set early_stopping=0"
            )
        yield "no validation text (val.*): no validation, so no best_bleu either"
    if not run.problem.has("test"):
        yield "no test text (test.*): the model will not be scored"


def describe_start(run: Run, start: int, imported_from: str | None) -> str:
    """Returns a line with the origin of the weights of the first step.

    Args:
        run: Settings of the run.
        start: Number of earlier steps.
        imported_from: File of another program from which the weights were imported.
    """
    place, other = run.model_dir.path, run.other_model
    if run.origin_record is not None and not start:
        path, weights, fingerprint = (run.origin_record[key] for key in ORIGIN_KEYS)
        return f"starting from {path} ({weights}, weights {fingerprint[:12]})"
    if imported_from is not None:
        return (
            f"starting from the weights in {place} (step {start:,}, imported from "
            f"{imported_from})"
        )
    if start:
        return f"resuming from step {start:,} in {place}"
    line = f"starting from random weights (seed {run.hparams.seed})"
    if other is None:
        return line
    return (
        f"{line}, not from the model in {other}, of which --hparams only reads the "
        f"settings; to start from its weights, give --init_from {other}; to train it "
        f"further, give --model_dir {other}, or a copy of it"
    )
