"""A few updates of a small model: losses, rates, gradients, weights after them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import tensorflow as tf

from golden_checks.model_cases import LOSSES, build
from golden_checks.sheet import Array, Sheet
from golden_checks.t2t_variables import to_t2t, vocab_sizes
from t2t_repro.batches import packed_batch
from t2t_repro.models.variables import named_variables
from t2t_repro.training.losses import loss_sum
from t2t_repro.training.step import TrainStep

WEIGHTS = 1e-5  # After all updates.
GRADIENTS = 1e-5
RATES = 1e-6
NORMS = 1e-4


def is_training_case(arrays: Any) -> bool:
    """Whether a file holds such a case."""
    return "hparams_json" in arrays and "learning_rates" in arrays


def check(sheet: Sheet) -> None:
    """Repeats the updates of a training case and compares what each one did."""
    training = Training(sheet)
    results = []
    for number in range(training.updates):
        gradients = training.in_t2t(training.gradients(number))
        _compare_group(sheet, f"step{number}/grad/", gradients, GRADIENTS)
        if number == 0:
            _compare_group(sheet, "grad0/", gradients, GRADIENTS)
        results.append(training.update(number))
        after = training.in_t2t(training.weights())
        _compare_group(sheet, f"step{number}/after/", after, WEIGHTS)
    _compare_group(sheet, "final/", after, WEIGHTS)
    loss, _, _, norm, rate = np.array(results).T
    sheet.compare("losses", loss, LOSSES)
    sheet.compare("learning_rates", rate, RATES, relative=True)
    sheet.compare("global_grad_norms", norm, NORMS, relative=True)


class Training:
    """A case's model, its batches and our update, to be called batch by batch."""

    def __init__(self, sheet: Sheet) -> None:
        self._sheet = sheet
        model, hparams = build(sheet, *vocab_sizes(sheet.names("var/")))
        self.model = model
        # Nothing was dropped, although the sets say so.
        self.hparams = hparams.replace(
            dropout=0.0, attention_dropout=0.0, ffn_dropout=0.0
        )
        t2t = json.loads(str(sheet.take("hparams_json")))
        self._shards = int(t2t["symbol_modality_num_shards"])
        self.updates = len(sheet.arrays["losses"])
        self.step = TrainStep(model, self.hparams, accumulate=False)
        strategy = tf.distribute.get_strategy()

        @tf.function(
            input_signature=[packed_batch.SIGNATURE, tf.TensorSpec([], tf.int32)]
        )
        def update(batch: dict[str, tf.Tensor], number: tf.Tensor) -> list[tf.Tensor]:
            return strategy.run(self.step.replica_step, args=(batch, number))

        self._update = update

    def batch(self, number: int) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns an update's source and target, int32 (batch, length) each."""
        sides = (f"inputs_{number}", f"targets_{number}")
        inputs, targets = (tf.constant(self._sheet.take(s), tf.int32) for s in sides)
        return inputs, targets

    def update(self, number: int) -> list[float]:
        """Makes the next update; returns the fields of a `StepResult`, in order."""
        inputs, targets = self.batch(number)
        batch = packed_batch.pack({"inputs": inputs, "targets": targets})
        return [float(x) for x in self._update(batch, number)]

    def weights(self) -> dict[str, Array]:
        """Returns the model's weights by our names."""
        return {
            name: v.value.numpy() for name, v in named_variables(self.model).items()
        }

    def moments(self, kind: str) -> dict[str, Array]:
        """Returns Adam's "m" or "v" by our names."""
        state = self.step.optimizer.state()
        prefix = f"{kind}/"
        return {
            name.removeprefix(prefix): v.numpy()
            for name, v in state.items()
            if name.startswith(prefix)
        }

    def gradients(self, number: int) -> dict[str, Array]:
        """Returns the gradient of a batch's mean loss by our names."""
        inputs, targets = self.batch(number)
        variables = {name: v.value for name, v in named_variables(self.model).items()}
        with tf.GradientTape() as tape:
            logits = self.model({"inputs": inputs, "targets": targets})
            total, count = loss_sum(logits, targets, self.hparams.label_smoothing)
            loss = total / count
        found = tape.gradient(loss, variables)
        return {name: tf.convert_to_tensor(g).numpy() for name, g in found.items()}

    def in_t2t(self, values: dict[str, Array]) -> dict[str, Array]:
        """Returns values by tensor2tensor's names, the tables in its shards."""
        return to_t2t(values, self.hparams.norm, self._shards)


def _compare_group(
    sheet: Sheet, prefix: str, ours: dict[str, Array], tolerance: float
) -> None:
    """Compares all arrays of a prefix with ours of the same names."""
    for name in sheet.names(prefix):
        if name in ours:
            sheet.compare(prefix + name, ours[name], tolerance)
