"""Adam as used by tensor2tensor, with named state variables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import keras
import tensorflow as tf


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
        self._m = [_zeros_like(value) for value in self._values]
        self._v = [_zeros_like(value) for value in self._values]

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


def _zeros_like(variable: tf.Variable) -> tf.Variable:
    strategy = tf.distribute.get_strategy()
    with strategy.extended.colocate_vars_with(variable):
        return tf.Variable(tf.zeros(variable.shape, variable.dtype), trainable=False)
