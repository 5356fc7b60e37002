"""Loss scaling, which keeps small gradients in float16 from vanishing."""

from collections.abc import Sequence

import tensorflow as tf

FIRST_SCALE = 2.0**15
FINITE_UPDATES_TO_GROW = 2000.0


class LossScale:
    """Scales nothing: float32 and bfloat16 hold every gradient."""

    def state(self) -> dict[str, tf.Variable]:
        """Returns what a checkpoint has to hold, by name."""
        return {}

    def scaled(self, total: tf.Tensor, tokens: tf.Tensor) -> tf.Tensor:
        """Returns what is differentiated; sum and count of symbols are float32 ()."""
        return total

    def unscaled(
        self, gradients: Sequence[tf.Tensor], tokens: tf.Tensor
    ) -> list[tf.Tensor]:
        """Turns gradients of `scaled` into those of the sum, in float32."""
        return list(gradients)

    def update(self, finite: tf.Tensor) -> None:
        """Adapts the scale; called in a replica's context; `finite` is bool ()."""
        del finite  # There is no scale to adapt.


class DynamicLossScale(LossScale):
    """A scale that is halved where gradients overflow and doubled where they do not.

    The mean over a device's symbols is differentiated, for a sum of thousands would
    overflow. A gradient that is not finite skips the update and halves the scale; 2,000
    finite updates in a row double it (Micikevicius et al. 2018, arXiv:1710.03740,
    section 3.2). Create it inside the strategy's scope.
    """

    def __init__(self) -> None:
        self._scale = tf.Variable(FIRST_SCALE, trainable=False)
        self._finite_updates = tf.Variable(0.0, trainable=False)

    def state(self) -> dict[str, tf.Variable]:
        """Returns the scale and how many updates in a row were finite."""
        return {
            "loss_scale/scale": self._scale,
            "loss_scale/finite_updates": self._finite_updates,
        }

    def scaled(self, total: tf.Tensor, tokens: tf.Tensor) -> tf.Tensor:
        """Returns the mean loss times the scale, float32 ()."""
        return total * (self._scale / tf.maximum(tokens, 1.0))

    def unscaled(
        self, gradients: Sequence[tf.Tensor], tokens: tf.Tensor
    ) -> list[tf.Tensor]:
        """Divides by what `scaled` multiplied with."""
        factor = tf.maximum(tokens, 1.0) / self._scale
        return [tf.cast(g, tf.float32) * factor for g in gradients]

    def update(self, finite: tf.Tensor) -> None:
        """Halves or doubles the scale where it is time."""
        count = tf.where(finite, self._finite_updates + 1.0, 0.0)
        grows = count >= FINITE_UPDATES_TO_GROW
        factor = tf.where(finite, tf.where(grows, 2.0, 1.0), 0.5)
        values = (tf.maximum(self._scale * factor, 1.0), tf.where(grows, 0.0, count))

        def assign(strategy: tf.distribute.Strategy, *values: tf.Tensor) -> None:
            for variable, value in zip(self.state().values(), values, strict=True):
                strategy.extended.update(
                    variable, lambda one, new: one.assign(new), args=(value,)
                )

        tf.distribute.get_replica_context().merge_call(assign, args=values)


def loss_scale_for(precision: str) -> LossScale:
    """Returns what a precision needs: float16 a scale, the others none."""
    return DynamicLossScale() if precision == "float16" else LossScale()
