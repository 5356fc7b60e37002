"""Label-smoothed cross entropy (paper section 5.4), and accuracy, without padding."""

from typing import Any

import keras
from keras import ops

from t2t_repro.layers.functional import Tensor
from t2t_repro.layers.label_smoothing import (
    entropy_of_smoothing,
    smoothed_cross_entropy,
)
from t2t_repro.layers.masks import non_padding


@keras.saving.register_keras_serializable("t2t_repro")
class LabelSmoothedCrossEntropy(keras.losses.Loss):
    """Keras loss: mean cross entropy over the non-padding tokens of a batch.

    With `fit` on several devices, Keras averages the means of the shards regardless of
    their numbers of tokens. `python -m t2t_repro.train` divides the global sum by the
    global number of tokens instead, as the paper's procedure requires.

    Args:
        label_smoothing: Probability taken from the correct token, in [0, 1).
        form: Distribution of the smoothing. "t2t": `smoothed_cross_entropy`. "marian":
            1 - e times the negative log probability of the target, plus e times the
            mean of the negative log probabilities of all V tokens, where e is
            `label_smoothing` (Marian layers/loss.h:CrossEntropyLoss).
        without_padding: Whether PAD is excluded from the softmax, as in models with
            `softmax_bias`.
    """

    def __init__(
        self,
        label_smoothing: float = 0.1,
        form: str = "t2t",
        without_padding: bool = False,
        name: str = "label_smoothed_cross_entropy",
        reduction: str = "mean_with_sample_weight",
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, reduction=reduction, **kwargs)
        self.label_smoothing = label_smoothing
        self.form = form
        self.without_padding = without_padding

    def __call__(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        """Computes the mean loss per token; padding has weight 0.

        Args:
            y_true: int32 (batch, target), 0 is PAD.
            y_pred: float (batch, target, V), logits.
            sample_weight: float (batch,) or (batch, target); None weights all tokens
                equally.

        Returns:
            float32 (), nats per token.
        """
        return super().__call__(y_true, y_pred, _token_weights(y_true, sample_weight))

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Computes the loss of each position, including padding.

        Args:
            y_true: int (batch, target), 0 is PAD.
            y_pred: float (batch, target, V), logits.

        Returns:
            float32 (batch, target), nats.

        Raises:
            ValueError: `form` is unknown.
        """
        if self.form not in ("t2t", "marian"):
            raise ValueError(f'form {self.form!r}: use "t2t" or "marian"')
        logits, targets = ops.cast(y_pred, "float32"), ops.cast(y_true, "int32")
        if self.without_padding:
            logits, targets = logits[..., 1:], ops.maximum(targets - 1, 0)
        if self.form == "t2t":
            return smoothed_cross_entropy(logits, targets, self.label_smoothing)
        # The target has probability 1 - e + e / V, so the others have e (V - 1) / V.
        size = logits.shape[-1]
        smoothing = self.label_smoothing * (size - 1) / size
        losses = smoothed_cross_entropy(logits, targets, smoothing)
        return losses + entropy_of_smoothing(smoothing, size)

    def sum_and_count(self, y_true: Tensor, y_pred: Tensor) -> tuple[Tensor, Tensor]:
        """Computes the sum of the loss over all tokens, and their number.

        The caller divides by the global number of tokens (tensor2tensor
        t2t_model.py:_loss_single with weights_nonzero).

        Args:
            y_true: int (batch, target), 0 is PAD.
            y_pred: float (batch, target, V), logits.

        Returns:
            The sum in nats and the number of tokens including EOS, both float32 ().
        """
        losses = self.call(y_true, y_pred)
        weights = ops.cast(non_padding(y_true), "float32")
        return ops.sum(losses * weights), ops.sum(weights)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return super().get_config() | {
            "label_smoothing": self.label_smoothing,
            "form": self.form,
            "without_padding": self.without_padding,
        }


@keras.saving.register_keras_serializable("t2t_repro")
class MaskedAccuracy(keras.metrics.SparseCategoricalAccuracy):
    """Keras metric: fraction of non-padding tokens that have the largest logit.

    Keras's own "accuracy" also counts padding. Equals tensor2tensor
    utils/metrics.py:padded_accuracy.

    Args:
        name: Name of the metric in the logs of `fit`.
        dtype: Data type of the result.
    """

    def __init__(self, name: str = "masked_accuracy", dtype: Any = None) -> None:
        super().__init__(name=name, dtype=dtype)

    def update_state(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> Any:
        """Adds the tokens of a batch; padding has weight 0.

        Args:
            y_true: int32 (batch, target), 0 is PAD.
            y_pred: float (batch, target, V), logits.
            sample_weight: float (batch,) or (batch, target); None weights all tokens
                equally.
        """
        weight = _token_weights(y_true, sample_weight)
        return super().update_state(y_true, y_pred, weight)


def _token_weights(y_true: Tensor, sample_weight: Tensor | None) -> Tensor:
    """Returns the weight of each token, float32 (batch, target), 0 for padding."""
    weight = ops.cast(non_padding(y_true), "float32")
    if sample_weight is None:
        return weight
    factor = ops.cast(sample_weight, "float32")
    return weight * (factor if len(factor.shape) == 2 else factor[:, None])
