"""Validation loss, without label smoothing or dropout."""

import tensorflow as tf

from t2t_repro.batches.packed_batch import BATCH_SIGNATURE
from t2t_repro.models.transformer import Transformer
from t2t_repro.training.losses import LabelSmoothedCrossEntropy
from t2t_repro.training.workers import Workers


class ValidationLoss:
    """Computes the cross entropy per target token, including EOS, over a split.

    It is not comparable with the training loss. tensor2tensor also disables dropout and
    label smoothing in evaluation (t2t_model.py:set_mode).

    Args:
        model: Model to validate.
        workers: Workers whose losses are summed; all of them must call the function at
            the same time, each with its own batches. None for a single process.
    """

    def __init__(self, model: Transformer, workers: Workers | None = None) -> None:
        self._workers = workers
        cross_entropy = LabelSmoothedCrossEntropy(label_smoothing=0.0)

        @tf.function(input_signature=BATCH_SIGNATURE, autograph=False)
        def sums(inputs: tf.Tensor, targets: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            logits = model({"inputs": inputs, "targets": targets})
            return cross_entropy.sum_and_count(targets, logits)

        self._sums = sums

    def __call__(self, batches: tf.data.Dataset) -> float:
        """Returns the loss in nats per token.

        Args:
            batches: Dictionaries of "inputs", int32 (rows, source), and "targets",
                int32 (rows, target).
        """
        total = tokens = 0.0
        for batch in batches:
            batch_total, count = self._sums(batch["inputs"], batch["targets"])
            total += float(batch_total)
            tokens += float(count)
        if self._workers is not None:
            total, tokens = self._workers.sums([total, tokens])
        return total / max(tokens, 1.0)
