"""Adam and Adafactor as used by tensor2tensor, with named state variables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import keras
import tensorflow as tf

from t2t_repro.hparams import HParams


@dataclass(eq=False)
class Adam:
    """Adam optimizer in the "epsilon hat" form (paper section 5.3).

    ``m = b1 m + (1-b1) g``; ``v = b2 v + (1-b2) g^2``;
    ``x -= rate * sqrt(1-b2^t) / (1-b1^t) * m / (sqrt(v) + epsilon)``, t = step + 1.

    It uses TensorFlow's fused kernel, as tensor2tensor does (utils/optimize.py, through
    contrib's LazyAdamOptimizer with dense gradients). Keras' optimizer needs a dozen
    operations per variable and sums gradients over replicas internally, so the global
    gradient is not available for clipping and logging. Create it inside the strategy's
    scope.

    Attributes:
        variables: Variables by name.
        beta1: Decay of the first moment.
        beta2: Decay of the second moment.
        epsilon: Constant added to the root of the second moment.
    """

    variables: Mapping[str, keras.Variable]
    beta1: float
    beta2: float
    epsilon: float

    def __post_init__(self) -> None:
        """Creates the moments."""
        self._values = [variable.value for variable in self.variables.values()]
        self._m = [zeros_like(value) for value in self._values]
        self._v = [zeros_like(value) for value in self._values]

    def state(self) -> dict[str, tf.Variable]:
        """Returns both moments by name: ``m/NAME`` and ``v/NAME``."""
        state: dict[str, tf.Variable] = {}
        for name, m, v in zip(self.variables, self._m, self._v, strict=True):
            state[f"m/{name}"] = m
            state[f"v/{name}"] = v
        return state

    def apply(
        self,
        gradients: Sequence[tf.Tensor],
        step: tf.Tensor,
        rate: tf.Tensor,
        enabled: tf.Tensor | bool = True,
    ) -> None:
        """Updates all variables, in a replica context.

        Args:
            gradients: Global gradients in the order of the variables, equal on all
                replicas. They must be finite even if `enabled` is False.
            step: int (), number of earlier steps.
            rate: float32 (), learning rate.
            enabled: bool (); if False, variables and moments stay bit-identical.
        """
        t = tf.cast(step, tf.float32) + 1.0
        settings = {
            "beta1_power": self.beta1**t,
            "beta2_power": self.beta2**t,
            # With decays of 1 and a rate of 0, the kernel changes no variable.
            "beta1": tf.where(enabled, self.beta1, 1.0),
            "beta2": tf.where(enabled, self.beta2, 1.0),
            "lr": tf.where(enabled, rate, 0.0),
            # One constant for all variables makes the graph smaller.
            "epsilon": tf.constant(self.epsilon),
        }

        def update(
            x: tf.Variable, m: tf.Variable, v: tf.Variable, gradient: tf.Tensor
        ) -> None:
            tf.raw_ops.ResourceApplyAdam(
                var=x.handle, m=m.handle, v=v.handle, grad=gradient, **settings
            )

        def update_all(strategy: tf.distribute.Strategy, *gradients: tf.Tensor) -> None:
            for x, *operands in zip(
                self._values, self._m, self._v, gradients, strict=True
            ):
                strategy.extended.update(x, update, args=operands)

        tf.distribute.get_replica_context().merge_call(update_all, args=gradients)


@dataclass(eq=False)
class Adafactor:
    """Adafactor without momentum (Shazeer and Stern 2018, algorithms 4 and 5).

    ``v = b v + (1-b) (g^2 + 1e-30)``, ``b = 1 - t^-0.8``, t = step + 1; of a matrix,
    only the means r of the rows and c of the columns of v are kept, and
    ``v = r c^T / mean(r)``. Then ``u = g / sqrt(v)`` and
    ``x -= rate * max(RMS(x), 0.001) * u / max(1, RMS(u))``.

    Source: tensor2tensor utils/adafactor.py:AdafactorOptimizer with its default
    settings and a given learning rate. (Keras' Adafactor bounds the rate by
    1 / sqrt(t), stores all of v, and has the other limits described at `Adam`.) Create
    it inside the strategy's scope.

    Attributes:
        variables: Variables by name.
    """

    variables: Mapping[str, keras.Variable]

    def __post_init__(self) -> None:
        """Creates the moments: r and c of each matrix, v of each other variable."""
        self._values = [variable.value for variable in self.variables.values()]
        self._moments = [
            [zeros_like(x, axis) for axis in ((0, 1) if x.shape.rank == 2 else (None,))]
            for x in self._values
        ]

    def state(self) -> dict[str, tf.Variable]:
        """Returns the moments by name: ``vr/NAME`` and ``vc/NAME``, or ``v/NAME``."""
        return {
            f"{kind}/{name}": moment
            for name, moments in zip(self.variables, self._moments, strict=True)
            for kind, moment in zip(
                ("vr", "vc") if len(moments) == 2 else ("v",), moments, strict=True
            )
        }

    def apply(
        self,
        gradients: Sequence[tf.Tensor],
        step: tf.Tensor,
        rate: tf.Tensor,
        enabled: tf.Tensor | bool = True,
    ) -> None:
        """Updates all variables, in a replica context; see `Adam.apply`."""
        t = tf.cast(step, tf.float32) + 1.0
        decay = tf.where(enabled, 1.0 - t**-0.8, 1.0)

        def update(x: tf.Variable, gradient: tf.Tensor, *moments: tf.Variable) -> None:
            squared = tf.square(gradient) + 1e-30
            axes = (1, 0) if len(moments) == 2 else ((),)
            roots = []
            for moment, axis in zip(moments, axes, strict=True):
                mean = tf.reduce_mean(squared, axis)
                moment.assign(decay * moment + (1.0 - decay) * mean)
                roots.append(tf.math.rsqrt(moment))
            if len(roots) == 2:
                row = roots[0] * tf.sqrt(tf.reduce_mean(moments[0]))
                roots = [row[:, tf.newaxis] * roots[1]]
            u = gradient * roots[0]
            scale = rate * tf.maximum(_rms(x), 0.001) / tf.maximum(1.0, _rms(u))
            # The moments are 0, and u is not finite, if no earlier step was enabled.
            x.assign_sub(tf.where(enabled, scale * u, tf.zeros_like(u)))

        def update_all(strategy: tf.distribute.Strategy, *gradients: tf.Tensor) -> None:
            for x, gradient, moments in zip(
                self._values, gradients, self._moments, strict=True
            ):
                strategy.extended.update(x, update, args=(gradient, *moments))

        tf.distribute.get_replica_context().merge_call(update_all, args=gradients)


def make_optimizer(
    variables: Mapping[str, keras.Variable], hparams: HParams
) -> Adam | Adafactor:
    """Returns the optimizer of a training run."""
    if hparams.optimizer == "adafactor":
        return Adafactor(variables)
    betas = hparams.adam_beta1, hparams.adam_beta2
    return Adam(variables, *betas, hparams.adam_epsilon)


def _rms(x: tf.Tensor) -> tf.Tensor:
    """Returns the root mean square of all elements, float32 ()."""
    return tf.sqrt(tf.reduce_mean(tf.square(x)))


def zeros_like(variable: tf.Variable, axis: int | None = None) -> tf.Variable:
    """Creates a variable of zeros, of the shape of another or of one of its axes."""
    strategy = tf.distribute.get_strategy()
    with strategy.extended.colocate_vars_with(variable):
        shape = variable.shape if axis is None else [variable.shape[axis]]
        return tf.Variable(tf.zeros(shape, variable.dtype), trainable=False)
