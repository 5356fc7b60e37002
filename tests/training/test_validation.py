"""Tests of the validation loss: cross entropy per token over a whole split."""

from unittest.mock import MagicMock

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.runs import checkpoints
from t2t_repro.training import selection, validator
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


def test_translated_sentences_are_at_equal_distances():
    assert selection.select_evenly(range(10), 4) == [0, 2, 5, 7]
    assert selection.select_evenly(range(1000), 500) == [*range(0, 1000, 2)]
    assert (
        selection.select_evenly("abc", 3)
        == selection.select_evenly("abc", 4)
        == [*"abc"]
    )


@pytest.mark.parametrize(
    ("data", "pairs", "is_other"),
    [
        ("A", 1, True),
        ("A char", 1, False),
        ("A char", 500, False),
        ("A char", 501, True),  # Of the first 500 pairs.
        ("A evenly char", 501, False),
    ],
)
def test_scores_of_another_tokenizer_or_other_pairs_are_not_compared(
    tmp_path, monkeypatch, data, pairs, is_other
):
    for name in ("ValidationLoss", "build_translator", "named_variables"):
        monkeypatch.setattr(validator, name, MagicMock())
    checkpoints.save(tmp_path, 5, {"w": np.zeros(1)}, meta={"data": data})
    lines = []
    run = MagicMock(log=lines.append)
    run.model_dir.best_dir = tmp_path
    run.problem.target_lang = "th"  # BLEU is computed over characters.
    run.problem.pairs.return_value = [("a", "b")] * pairs
    validator.Validator(run, *[MagicMock()] * 3, MagicMock(number=0), None, "A")
    assert any(line.endswith("starts over") for line in lines) is is_other
