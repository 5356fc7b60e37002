"""The validation loss is the plain cross entropy per symbol of the whole split."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.training.validation import ValidationLoss
from tests.training import toy


def test_it_is_the_mean_over_symbols_of_all_batches():
    # Dropout and smoothing are on in training, and must not show here.
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
    # Cut otherwise, and padded further, it is the same.
    single = [
        {
            key: tf.pad(value[row : row + 1], [[0, 0], [0, 4]])
            for key, value in b.items()
        }
        for b in batches
        for row in range(len(b["inputs"]))
    ]
    assert validation_loss(iter(single)) == pytest.approx(total / count, rel=1e-5)


def test_an_empty_split_is_worth_nothing_and_no_error():
    assert ValidationLoss(toy.model())(iter([])) == 0.0
