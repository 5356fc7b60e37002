"""Tests of the validation loss: cross entropy per token over a whole split."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.training.validation import ValidationLoss
from tests.training import toy


def test_loss_is_the_mean_over_the_tokens_of_all_batches():
    # Dropout and label smoothing must not affect the validation loss.
    hparams = toy.HPARAMS.replace(dropout=0.5, label_smoothing=0.3)
    model = toy.model(hparams)
    batches = [toy.rectangle(step, rows) for step, rows in enumerate((7, 1, 3))]
    total = count = 0.0
    for batch in batches:
        logits = np.array(
            model({"inputs": batch["inputs"], "targets": batch["targets"]}), "float64"
        )
        log_sums = np.log(np.exp(logits).sum(axis=-1))
        for row, targets in enumerate(batch["targets"]):
            for column, target in enumerate(targets):
                if target:
                    total += log_sums[row, column] - logits[row, column, target]
                    count += 1
    validation_loss = ValidationLoss(model)
    assert validation_loss(iter(batches)) == pytest.approx(total / count, rel=1e-5)
    # Division into batches and padding do not change the loss.
    single = [
        {
            key: tf.pad(value[row : row + 1], [[0, 0], [0, 4]])
            for key, value in b.items()
        }
        for b in batches
        for row in range(len(b["inputs"]))
    ]
    assert validation_loss(iter(single)) == pytest.approx(total / count, rel=1e-5)


def test_loss_of_an_empty_split_is_0():
    assert ValidationLoss(toy.model())(iter([])) == 0.0
