"""The loss on held-out pairs, without smoothing and without dropout."""

import tensorflow as tf

from t2t_repro.batches.packed_batch import BATCH_SIGNATURE
from t2t_repro.models.transformer import Transformer
from t2t_repro.training.losses import loss_sum
from t2t_repro.training.workers import Workers


class ValidationLoss:
    """Computes the cross entropy per target symbol, EOS included, over a split.

    Not comparable with the training loss: tensor2tensor too switches dropout and label
    smoothing off in evaluation (t2t_model.py:set_mode). Each of several `workers`
    computes it of batches of its own, all at the same time.
    """

    def __init__(self, model: Transformer, workers: Workers | None = None) -> None:
        self._workers = workers

        @tf.function(input_signature=BATCH_SIGNATURE)
        def sums(inputs: tf.Tensor, targets: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            logits = model({"inputs": inputs, "targets": targets})
            return loss_sum(logits, targets, label_smoothing=0.0)

        self._sums = sums

    def __call__(self, batches: tf.data.Dataset) -> float:
        """Returns nats per symbol, of int32 (rows, source) and (rows, target)."""
        total = tokens = 0.0
        for batch in batches:
            part, count = self._sums(batch["inputs"], batch["targets"])
            total += float(part)
            tokens += float(count)
        if self._workers is not None:
            total, tokens = self._workers.sums([total, tokens])
        return total / max(tokens, 1.0)
