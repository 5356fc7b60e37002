"""The training loss: label-smoothed cross entropy (paper section 5.4)."""

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
    """The mean over the symbols of a batch; padding (0) does not count.

    With `fit` on several devices each takes the mean of its own share, and the means
    are averaged, however many symbols a share has. `python -m t2t_repro.train` divides
    the sum by the number of all symbols instead, as the paper's procedure needs.

    Args:
        label_smoothing: what is taken from the right symbol, from 0 to less than 1.
        form: how it is shared out, "t2t" or "marian"; see `symbol_losses`.
        without_padding: whether PAD is no symbol, as in models with `softmax_bias`.
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
        return symbol_losses(
            logits, targets, self.label_smoothing, self.form, self.without_padding
        )

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments that make the loss again."""
        return super().get_config() | {
            "label_smoothing": self.label_smoothing,
            "form": self.form,
            "without_padding": self.without_padding,
        }


def symbol_losses(
    logits: Tensor,
    targets: Tensor,
    label_smoothing: float,
    form: str = "t2t",
    without_padding: bool = False,
) -> Tensor:
    """Computes the loss of every position, what stands at padding included.

    Args:
        logits: float32 (..., V).
        targets: int32 (...), 0 is PAD.
        label_smoothing: e, from 0 to less than 1.
        form: "t2t": `smoothed_cross_entropy`. "marian": 1 - e times the negative log
            probability of the symbol, plus e times the mean of all symbols' (Marian
            layers/loss.h:CrossEntropyLoss).
        without_padding: whether PAD is none of the V symbols, as in models with
            `softmax_bias`.

    Returns:
        float32 (...), nats.

    Raises:
        ValueError: there is no such form.
    """
    if form not in ("t2t", "marian"):
        raise ValueError(f'form {form!r}: use "t2t" or "marian"')
    if without_padding:
        logits, targets = logits[..., 1:], ops.maximum(targets - 1, 0)
    if form == "t2t":
        return smoothed_cross_entropy(logits, targets, label_smoothing)
    # The right symbol gets 1 - e + e / V, so that the others share e (V - 1) / V.
    size = logits.shape[-1]
    shared = label_smoothing * (size - 1) / size
    losses = smoothed_cross_entropy(logits, targets, shared)
    return losses + entropy_of_smoothing(shared, size)


def loss_sum(
    logits: Tensor,
    targets: Tensor,
    label_smoothing: float,
    form: str = "t2t",
    without_padding: bool = False,
) -> tuple[Tensor, Tensor]:
    """Sums the loss over the positions that hold a symbol.

    The division by the token count is left to the caller, who alone knows the
    global count (tensor2tensor t2t_model.py:_loss_single with weights_nonzero).

    Args:
        logits: float (batch, target, V).
        targets: int32 (batch, target), 0 is PAD.
        label_smoothing: from 0 to less than 1.
        form: see `symbol_losses`.
        without_padding: see there.

    Returns:
        The sum in nats and the number of symbols, EOS included, both float32 ().
    """
    wide = ops.cast(logits, "float32")
    losses = symbol_losses(wide, targets, label_smoothing, form, without_padding)
    weights = ops.cast(non_padding(targets), "float32")
    return ops.sum(losses * weights), ops.sum(weights)
