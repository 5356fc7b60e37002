"""The learning rate (paper equation (3), and tensor2tensor's later form)."""

import dataclasses

import keras
from keras import ops

from t2t_repro.layers.functional import Tensor


def paper_rate(step: Tensor, d_model: int, warmup_steps: int) -> Tensor:
    """``d_model^-0.5 * min(n^-0.5, n * warmup_steps^-1.5)``, n = step + 1.

    Args:
        step: the number of updates done before, 0 for the first.
        d_model: the model's width.
        warmup_steps: updates of linear growth.

    Returns:
        float32 (). Paper equation (3); tensor2tensor
        learning_rate.py:legacy_learning_rate_schedule ("noam") with 0.1.
    """
    n = ops.cast(step, "float32") + 1.0
    return d_model**-0.5 * ops.minimum(n**-0.5, n * warmup_steps**-1.5)


def t2t_rate(step: Tensor, d_model: int, warmup_steps: int) -> Tensor:
    """``min(1, step / warmup) * max(step, warmup)^-0.5 * d_model^-0.5``.

    The first update has rate 0: it moves nothing, but fills Adam's moments.

    Args:
        step: the number of updates done before, 0 for the first.
        d_model: the model's width.
        warmup_steps: updates of linear growth.

    Returns:
        float32 (). Tensor2tensor learning_rate.py:learning_rate_factor, factors
        linear_warmup * rsqrt_decay * rsqrt_hidden_size.
    """
    n = ops.cast(step, "float32")
    growth = ops.minimum(1.0, n / warmup_steps)
    return growth * ops.maximum(n, float(warmup_steps)) ** -0.5 * d_model**-0.5


def rsqrt_decay_rate(step: Tensor, d_model: int, warmup_steps: int) -> Tensor:
    """``max(step, warmup)^-0.5``: constant at first, whatever the width.

    Args:
        step: the number of updates done before, 0 for the first.
        d_model: not used.
        warmup_steps: updates at the first rate.

    Returns:
        float32 (). Tensor2tensor learning_rate.py:learning_rate_factor, factor
        rsqrt_decay alone, as transformer_tpu has it.
    """
    n = ops.cast(step, "float32")
    return ops.maximum(n, float(warmup_steps)) ** -0.5


def marian_rate(step: Tensor, d_model: int, warmup_steps: int) -> Tensor:
    """``min(n / warmup, sqrt(warmup / n))``, n = step + 1: at most 1.

    Args:
        step: the number of updates done before, 0 for the first.
        d_model: not used.
        warmup_steps: updates of linear growth.

    Returns:
        float32 (). Marian training/scheduler.h with --lr-warmup and as much
        --lr-decay-inv-sqrt; its --learn-rate is the constant factor.
    """
    n = ops.cast(step, "float32") + 1.0
    return ops.minimum(n / warmup_steps, (warmup_steps / n) ** 0.5)


RATES = {
    "paper": paper_rate,
    "t2t": t2t_rate,
    "rsqrt_decay": rsqrt_decay_rate,
    "marian": marian_rate,
}


@keras.saving.register_keras_serializable("t2t_repro")
@dataclasses.dataclass(eq=False)
class Schedule(keras.optimizers.schedules.LearningRateSchedule):
    """One of the formulas, times a constant, as Keras' optimizers take it.

    Args:
        formula: a key of `RATES`.
        d_model: the model's width.
        warmup_steps: updates of linear growth.
        scale: a constant factor (paper 1, tensor2tensor's later sets 2).
    """

    formula: str
    d_model: int
    warmup_steps: int
    scale: float = 1.0

    def __call__(self, step: Tensor) -> Tensor:
        """Returns the rate of the update after ``step`` updates, float32 ()."""
        rate = RATES[self.formula](step, self.d_model, self.warmup_steps)
        return self.scale * rate

    def get_config(self) -> dict[str, object]:
        """Returns the constructor's arguments."""
        return dataclasses.asdict(self)
