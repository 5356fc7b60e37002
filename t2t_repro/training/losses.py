"""The training loss: label-smoothed cross entropy (paper section 5.4)."""

from typing import Any

import keras
from keras import ops

from t2t_repro.layers.formulas import Tensor, smoothed_cross_entropy
from t2t_repro.layers.masks import non_padding


@keras.saving.register_keras_serializable("t2t_repro")
class LabelSmoothedCrossEntropy(keras.losses.Loss):
    """The mean over the symbols of a batch; padding (0) does not count.

    With `fit` on several devices each takes the mean of its own share, and the means
    are averaged, however many symbols a share has. `python -m t2t_repro.train` divides
    the sum by the number of all symbols instead, as the paper's procedure needs.

    Args:
        label_smoothing: what the V - 1 other symbols share, from 0 to less than 1.
    """

    def __init__(
        self,
        label_smoothing: float = 0.1,
        name: str = "label_smoothed_cross_entropy",
        reduction: str = "mean_with_sample_weight",
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, reduction=reduction, **kwargs)
        self.label_smoothing = label_smoothing

    def __call__(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        """Computes the loss; padding gets no weight.

        Args:
            y_true: int32 (batch, target), 0 is PAD.
            y_pred: float (batch, target, V), logits.
            sample_weight: float, (batch,) or (batch, target); None: 1.

        Returns:
            float32 (), nats per symbol.
        """
        weight = ops.cast(non_padding(y_true), "float32")
        if sample_weight is not None:
            given = ops.cast(sample_weight, "float32")
            weight = weight * (given if len(given.shape) == 2 else given[:, None])
        return super().__call__(y_true, y_pred, weight)

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Returns the loss of each symbol, float32 (batch, target), nats."""
        logits = ops.cast(y_pred, "float32")
        targets = ops.cast(y_true, "int32")
        return smoothed_cross_entropy(logits, targets, self.label_smoothing)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments that make the loss again."""
        return super().get_config() | {"label_smoothing": self.label_smoothing}


def loss_sum(
    logits: Tensor, targets: Tensor, label_smoothing: float
) -> tuple[Tensor, Tensor]:
    """Sums the loss over the positions that hold a symbol.

    The division by the token count is left to the caller, who alone knows the
    global count (tensor2tensor t2t_model.py:_loss_single with weights_nonzero).

    Args:
        logits: float (batch, target, V).
        targets: int32 (batch, target), 0 is PAD.
        label_smoothing: from 0 to less than 1.

    Returns:
        The sum in nats and the number of symbols, EOS included, both float32 ().
    """
    losses = smoothed_cross_entropy(
        ops.cast(logits, "float32"), targets, label_smoothing
    )
    weights = ops.cast(non_padding(targets), "float32")
    return ops.sum(losses * weights), ops.sum(weights)
