"""Checks of training steps: losses, learning rates, gradients and weights."""

from __future__ import annotations

import json

import numpy as np
import tensorflow as tf

from golden_checks.model_cases import build
from golden_checks.rounding import model_additions
from golden_checks.sheet import Array, Sheet
from golden_checks.t2t_variables import convert_to_t2t, vocab_sizes
from golden_checks.tables import RATE
from t2t_repro.batches import packed_batch
from t2t_repro.models.variables import named_variables
from t2t_repro.training.losses import LabelSmoothedCrossEntropy
from t2t_repro.training.step import TrainStep


def check(sheet: Sheet) -> None:
    """Repeats the steps of a training case and compares their results."""
    training = Training(sheet)
    results = []
    for number in range(training.updates):
        gradients = training.convert_to_t2t(training.gradients(number))
        additions = training.additions.gradients
        _compare_group(sheet, f"step{number}/grad/", gradients, additions)
        if number == 0:
            _compare_group(sheet, "grad0/", gradients, additions)
        results.append(training.update(number))
        after = training.convert_to_t2t(training.weights())
        _compare_group(sheet, f"step{number}/after/", after, additions)
    _compare_group(sheet, "final/", after, additions)
    loss, _, _, norm, rate = np.array(results).T
    sheet.compare("losses", loss, training.additions.losses + training.tokens)
    sheet.compare("learning_rates", rate, RATE, relative=True)
    # The norm is a sum over all elements of all gradients.
    additions += sum(value.size for value in gradients.values())
    sheet.compare("global_grad_norms", norm, additions, relative=True)


class Training:
    """Model, batches and training step of a case.

    Attributes:
        model: The model.
        hparams: Its hyper-parameters, without dropout.
        updates: Number of steps.
        step: The training step.
        tokens: Number of positions per side of a batch.
        additions: Additions of a forward and backward pass.
    """

    def __init__(self, sheet: Sheet) -> None:
        self._sheet = sheet
        sizes = vocab_sizes(sheet.names("var/"))
        model, hparams = build(sheet, *sizes)
        self.model = model
        shapes = [sheet.arrays[f"{side}_0"].shape for side in ("inputs", "targets")]
        rows, length = np.max(shapes, axis=0).tolist()
        self.tokens = rows * length
        self.additions = model_additions(hparams, (rows, length), sizes[1])
        # The reference steps ran without dropout, regardless of the hyper-parameters.
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
        """Returns source and target of a step, int32 (batch, length) each."""
        sides = (f"inputs_{number}", f"targets_{number}")
        inputs, targets = (tf.constant(self._sheet.take(s), tf.int32) for s in sides)
        return inputs, targets

    def update(self, number: int) -> list[float]:
        """Runs the next step; returns the fields of its `StepResult` in order."""
        inputs, targets = self.batch(number)
        sides = {"inputs": inputs, "targets": targets}
        batch = packed_batch.pack(sides, token_ratio=1.0)  # The ratio is not compared.
        return [float(x) for x in self._update(batch, number)]

    def weights(self) -> dict[str, Array]:
        """Returns the model's weights by our variable names."""
        return {
            name: v.value.numpy() for name, v in named_variables(self.model).items()
        }

    def moments(self, kind: str) -> dict[str, Array]:
        """Returns Adam's moments "m" or "v" by our variable names."""
        state = self.step.optimizer.state()
        names = [name for name in state if name.startswith(f"{kind}/")]
        return {name.removeprefix(f"{kind}/"): state[name].numpy() for name in names}

    def gradients(self, number: int) -> dict[str, Array]:
        """Returns the gradients of a batch's mean loss by our variable names."""
        inputs, targets = self.batch(number)
        variables = {name: v.value for name, v in named_variables(self.model).items()}
        cross_entropy = LabelSmoothedCrossEntropy(self.hparams.label_smoothing)
        with tf.GradientTape() as tape:
            logits = self.model({"inputs": inputs, "targets": targets})
            total, count = cross_entropy.sum_and_count(targets, logits)
            loss = total / count
        gradients = tape.gradient(loss, variables)
        return {n: tf.convert_to_tensor(g).numpy() for n, g in gradients.items()}

    def convert_to_t2t(self, values: dict[str, Array]) -> dict[str, Array]:
        """Returns values by tensor2tensor's names, with embedding tables in shards."""
        return convert_to_t2t(values, self.hparams.norm, self._shards)


def _compare_group(
    sheet: Sheet, prefix: str, ours: dict[str, Array], additions: int
) -> None:
    """Compares the arrays under a prefix with our values of the same names."""
    for name in sheet.names(prefix):
        if name in ours:
            sheet.compare(prefix + name, ours[name], additions)
