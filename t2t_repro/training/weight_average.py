"""Exponential moving average of the weights during training."""

from collections.abc import Mapping

import keras
import tensorflow as tf

from t2t_repro.runs.averaging import MOVING, MOVING_WEIGHT
from t2t_repro.training.optimizer import zeros_like


class WeightAverage:
    """Moving average of the weights after each step, with Adam's bias correction.

    ``s = d s + (1-d) x`` and ``n = d n + (1-d)``, both from 0; the average is
    ``s / n``. It therefore does not depend on the weights before the first step. Create
    it inside the strategy's scope.

    Args:
        variables: Variables by name.
        decay: Decay rate d; 0 disables the average.
    """

    def __init__(self, variables: Mapping[str, keras.Variable], decay: float) -> None:
        self._decay = decay
        self._values: list[tf.Variable | tf.Tensor] = []
        self._sums: dict[str, tf.Variable] = {}
        if decay:
            self._values = [variable.value for variable in variables.values()]
            names = [f"{MOVING}{name}" for name in variables]
            sums = map(zeros_like, self._values)
            self._sums = dict(zip(names, sums, strict=True))
            # The weight n is the sum of a variable that is always 1.
            self._values.append(tf.constant(1.0))
            self._sums[MOVING_WEIGHT] = tf.Variable(0.0, trainable=False)

    def state(self) -> dict[str, tf.Variable]:
        """Returns s of each variable as ``ema/NAME``, and n; none if disabled."""
        return self._sums

    def update(self, enabled: tf.Tensor | bool = True) -> None:
        """Adds the weights, in a replica context, unless `enabled` is False."""
        if not self._decay:
            return
        decay = tf.where(enabled, self._decay, 1.0)

        def add(s: tf.Variable, x: tf.Variable | tf.Tensor) -> None:
            s.assign(decay * s + (1.0 - decay) * x)

        def add_all(strategy: tf.distribute.Strategy) -> None:
            for s, x in zip(self._sums.values(), self._values, strict=True):
                strategy.extended.update(s, add, args=(x,))

        tf.distribute.get_replica_context().merge_call(add_all)
