"""Adam as tensor2tensor ran it, with its state under names of our own."""

from collections.abc import Mapping, Sequence

import keras
import tensorflow as tf


class Adam:
    """Adam with the "epsilon hat" form (paper section 5.3), in the strategy's scope.

    ``m = b1 m + (1-b1) g``; ``v = b2 v + (1-b2) g^2``;
    ``x -= rate * sqrt(1-b2^t) / (1-b1^t) * m / (sqrt(v) + epsilon)``, t = step + 1.

    This is TensorFlow's own fused kernel, the one tensor2tensor called
    (utils/optimize.py, through contrib's LazyAdamOptimizer with dense gradients).
    Keras' optimizer needs a dozen operations per variable, and sums gradients over
    replicas by itself, which hides the global gradient from clipping and logging.
    """

    def __init__(
        self,
        variables: Mapping[str, keras.Variable],
        beta1: float,
        beta2: float,
        epsilon: float,
    ) -> None:
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self._variables = [variable.value for variable in variables.values()]
        self._m = [_zeros_like(v) for v in self._variables]
        self._v = [_zeros_like(v) for v in self._variables]
        self._names = list(variables)

    def state(self) -> dict[str, tf.Variable]:
        """Returns both moments by name: ``m/NAME`` and ``v/NAME``."""
        state: dict[str, tf.Variable] = {}
        for name, m, v in zip(self._names, self._m, self._v, strict=True):
            state[f"m/{name}"] = m
            state[f"v/{name}"] = v
        return state

    def apply(
        self,
        gradients: Sequence[tf.Tensor],
        step: tf.Tensor,
        rate: tf.Tensor,
        wanted: tf.Tensor | bool = True,
    ) -> None:
        """Updates every variable; to be called in a replica's context.

        `gradients` are global, the same on every replica, in the order of the
        variables; `step`, int (), counts the updates before; `rate` is float32 ().
        Where `wanted`, bool (), is False nothing changes, bit for bit; gradients must
        be finite nevertheless.
        """
        t = tf.cast(step, tf.float32) + 1.0
        settings = {
            "beta1_power": self.beta1**t,
            "beta2_power": self.beta2**t,
            # Without decay and rate, the kernel leaves all three variables as they are.
            "beta1": tf.where(wanted, self.beta1, 1.0),
            "beta2": tf.where(wanted, self.beta2, 1.0),
            "lr": tf.where(wanted, rate, 0.0),
            # One constant for all variables, which makes the graph smaller.
            "epsilon": tf.constant(self.epsilon),
        }

        def update(
            x: tf.Variable,
            m: tf.Variable,
            v: tf.Variable,
            gradient: tf.Tensor,
            **settings: tf.Tensor,
        ) -> None:
            tf.raw_ops.ResourceApplyAdam(
                var=x.handle, m=m.handle, v=v.handle, grad=gradient, **settings
            )

        def update_all(strategy: tf.distribute.Strategy, *gradients: tf.Tensor) -> None:
            for x, *given in zip(
                self._variables, self._m, self._v, gradients, strict=True
            ):
                strategy.extended.update(x, update, args=given, kwargs=settings)

        tf.distribute.get_replica_context().merge_call(update_all, args=gradients)


def _zeros_like(variable: tf.Variable) -> tf.Variable:
    strategy = tf.distribute.get_strategy()
    with strategy.extended.colocate_vars_with(variable):
        return tf.Variable(tf.zeros(variable.shape, variable.dtype), trainable=False)
