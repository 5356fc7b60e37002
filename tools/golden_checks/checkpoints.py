"""Checks of tensor2tensor's checkpoints: model cases, training cases and averages."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from golden_checks.sheet import Sheet
from golden_checks.training_cases import Training
from t2t_repro.runs.averaging import mean
from t2t_repro.runs.tensor_file import TensorFile

AVERAGED = "averaged.ckpt-0"  # Average of the other checkpoints in the folder.


def read(prefix: Path, name: str) -> Sheet:
    """Reads the variables of a checkpoint into a sheet."""
    file = TensorFile(prefix)
    return Sheet(name, {variable: file.read(variable) for variable in file.shapes()})


def check_weights(sheet: Sheet, case: Sheet) -> None:
    """Compares a checkpoint with the weights of its model case."""
    for name, value in case.group("var/").items():
        sheet.compare(name, value)
    # The weights were not trained, so the step is arbitrary.
    sheet.take("global_step")


def check_training(sheet: Sheet, case: Sheet) -> None:
    """Compares a checkpoint with our weights and moments after the same steps."""
    training = Training(case)
    for number in range(training.updates):
        training.update(number)
    additions = training.additions.gradients
    for name, value in training.convert_to_t2t(training.weights()).items():
        sheet.compare(name, value, additions)
    # A square has twice the relative error of its root, as after four times as many
    # additions.
    for kind, slot, count in (("m", "Adam", additions), ("v", "Adam_1", 4 * additions)):
        for name, value in training.convert_to_t2t(training.moments(kind)).items():
            sheet.compare(f"training/{name}/{slot}", value, count)
    hparams = training.hparams
    # tensor2tensor stores the powers of the betas for the next step.
    power = training.updates + 1
    for name, beta in (("beta1", hparams.adam_beta1), ("beta2", hparams.adam_beta2)):
        expected = np.float32(beta**power)
        sheet.compare(f"training/{name}_power", expected, power)
    sheet.compare("global_step", training.updates)


def check_averaged(sheet: Sheet, parts: list[Sheet]) -> None:
    """Compares averaged variables with our mean over the averaged checkpoints."""
    for name in sheet.arrays:
        if name != "global_step":
            # Both sum in float64; rounding to float32 differs by at most one ulp.
            ours = mean(part.take(name) for part in parts)
            sheet.compare(name, ours, 1)
    # avg_checkpoints.py resets the step.
    sheet.compare("global_step", 0)
    for part in parts:
        part.take("global_step")
