"""Learning rate schedules: paper equation (3), tensor2tensor's and Marian's forms.

The keyword arguments of a formula are its settings: hyper-parameters of the same name.
"""

import inspect
from collections.abc import Callable
from typing import Any, Self

import keras
from keras import ops

from t2t_repro.hparams import HParams
from t2t_repro.layers.functional import Tensor


def paper_rate(step: Tensor, *, d_model: int, warmup_steps: int) -> Tensor:
    """Computes ``d_model^-0.5 * min(n^-0.5, n * warmup_steps^-1.5)``, n = step + 1.

    Args:
        step: int (), number of earlier steps; 0 for the first step.
        d_model: Width of the model.
        warmup_steps: Number of steps of linear growth.

    Returns:
        float32 (). Paper equation (3); tensor2tensor
        learning_rate.py:legacy_learning_rate_schedule ("noam") with 0.1.
    """
    n = ops.cast(step, "float32") + 1.0
    return d_model**-0.5 * ops.minimum(n**-0.5, n * warmup_steps**-1.5)


def t2t_rate(step: Tensor, *, d_model: int, warmup_steps: int) -> Tensor:
    """Computes ``min(1, step / warmup) * max(step, warmup)^-0.5 * d_model^-0.5``.

    The first step has rate 0: it only initializes Adam's moments.

    Args:
        step: int (), number of earlier steps; 0 for the first step.
        d_model: Width of the model.
        warmup_steps: Number of steps of linear growth.

    Returns:
        float32 (). Tensor2tensor learning_rate.py:learning_rate_factor, factors
        linear_warmup * rsqrt_decay * rsqrt_hidden_size.
    """
    n = ops.cast(step, "float32")
    growth = ops.minimum(1.0, n / warmup_steps)
    return growth * ops.maximum(n, float(warmup_steps)) ** -0.5 * d_model**-0.5


def rsqrt_decay_rate(step: Tensor, *, warmup_steps: int) -> Tensor:
    """Computes ``max(step, warmup)^-0.5``, which is constant during the warm-up.

    Args:
        step: int (), number of earlier steps; 0 for the first step.
        warmup_steps: Number of steps at the constant rate.

    Returns:
        float32 (). Tensor2tensor learning_rate.py:learning_rate_factor with the single
        factor rsqrt_decay, as in transformer_tpu.
    """
    n = ops.cast(step, "float32")
    return ops.maximum(n, float(warmup_steps)) ** -0.5


def marian_rate(step: Tensor, *, warmup_steps: int) -> Tensor:
    """Computes ``min(n / warmup, sqrt(warmup / n))``, n = step + 1; at most 1.

    Args:
        step: int (), number of earlier steps; 0 for the first step.
        warmup_steps: Number of steps of linear growth.

    Returns:
        float32 (). Marian training/scheduler.h with equal --lr-warmup and
        --lr-decay-inv-sqrt; --learn-rate is the constant factor.
    """
    n = ops.cast(step, "float32") + 1.0
    return ops.minimum(n / warmup_steps, (warmup_steps / n) ** 0.5)


def constant_rate(step: Tensor, *, warmup_steps: int) -> Tensor:
    """Computes ``min(n / warmup, 1)``, n = step + 1; always 1 if warmup is 1.

    Args:
        step: int (), number of earlier steps; 0 for the first step.
        warmup_steps: Number of steps of linear growth.

    Returns:
        float32 (). Marian --lr-warmup without a decay; tensor2tensor
        learning_rate.py:learning_rate_factor, factors constant * linear_warmup, for
        which n is `step`.
    """
    return ops.minimum((ops.cast(step, "float32") + 1.0) / warmup_steps, 1.0)


def inverse_sqrt_rate(
    step: Tensor, *, warmup_steps: int, decay_start_step: int
) -> Tensor:
    """Computes ``min(n / warmup, 1, sqrt(start / n))``, n = step + 1.

    Args:
        step: int (), number of earlier steps; 0 for the first step.
        warmup_steps: Number of steps of linear growth.
        decay_start_step: Step from which the rate falls.

    Returns:
        float32 (). Marian training/scheduler.h with --lr-warmup and
        --lr-decay-inv-sqrt.
    """
    n = ops.cast(step, "float32") + 1.0
    growth = constant_rate(step, warmup_steps=warmup_steps)
    return ops.minimum(growth, (decay_start_step / n) ** 0.5)


RATES: dict[str, Callable[..., Tensor]] = {
    rate.__name__.removesuffix("_rate"): rate
    for rate in (
        *(paper_rate, t2t_rate, rsqrt_decay_rate, marian_rate),
        *(constant_rate, inverse_sqrt_rate),
    )
}
"""Formulas by the values of the hyper-parameter `learning_rate_schedule`."""


@keras.saving.register_keras_serializable("t2t_repro")
class Schedule(keras.optimizers.schedules.LearningRateSchedule):
    """Keras learning rate schedule: one of the `RATES`, times a constant.

    Args:
        formula: Key of `RATES`.
        scale: Constant factor (1 in the paper, 2 in tensor2tensor's later sets).
        **settings: Settings of the formula; those of other formulas have no effect.
    """

    def __init__(self, formula: str, scale: float = 1.0, **settings: float) -> None:
        self.formula, self.scale = formula, scale
        names = inspect.getfullargspec(RATES[formula]).kwonlyargs
        self.settings = {name: settings[name] for name in names}

    @classmethod
    def from_hparams(cls, hparams: HParams) -> Self:
        """Returns the schedule of a training run."""
        formula, scale = hparams.learning_rate_schedule, hparams.learning_rate_scale
        return cls(formula, scale, **vars(hparams))

    def __call__(self, step: Tensor) -> Tensor:
        """Returns the learning rate after ``step`` earlier steps, float32 ()."""
        return self.scale * RATES[self.formula](step, **self.settings)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {"formula": self.formula, "scale": self.scale, **self.settings}
