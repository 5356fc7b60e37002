"""Loss scaling, which prevents the underflow of small gradients in float16."""

from collections.abc import Sequence

import tensorflow as tf

FIRST_SCALE = 2.0**15
FINITE_STEPS_TO_GROW = 2000.0


class LossScale:
    """No loss scaling: the range of float32 and bfloat16 suffices for all gradients."""

    def state(self) -> dict[str, tf.Variable]:
        """Returns the variables that a checkpoint must contain, by name."""
        return {}

    def scale_loss(self, total: tf.Tensor, tokens: tf.Tensor) -> tf.Tensor:
        """Returns the scaled loss, which is differentiated.

        Args:
            total: float32 (), sum of the loss over a device's tokens.
            tokens: float32 (), number of tokens.
        """
        return total

    def unscale_gradients(
        self, gradients: Sequence[tf.Tensor], tokens: tf.Tensor
    ) -> list[tf.Tensor]:
        """Converts gradients of the scaled loss to those of the loss sum, float32."""
        return list(gradients)

    def update(self, finite: tf.Tensor) -> None:
        """Adapts the scale, in a replica context.

        Args:
            finite: bool (), whether the gradients of the step are finite.
        """
        del finite  # There is no scale to adapt.


class DynamicLossScale(LossScale):
    """Loss scale that is halved on overflow and doubled after many finite steps.

    The loss is the mean over a device's tokens, because the sum over thousands of
    tokens would overflow. A gradient that is not finite skips the step and halves the
    scale; 2,000 finite steps in a row double it (Micikevicius et al. 2018,
    arXiv:1710.03740, section 3.2). Create it inside the strategy's scope.
    """

    def __init__(self) -> None:
        self._scale = tf.Variable(FIRST_SCALE, trainable=False)
        self._finite_steps = tf.Variable(0.0, trainable=False)

    def state(self) -> dict[str, tf.Variable]:
        """Returns the scale and the number of finite steps in a row."""
        return {
            "loss_scale/scale": self._scale,
            "loss_scale/finite_updates": self._finite_steps,
        }

    def scale_loss(self, total: tf.Tensor, tokens: tf.Tensor) -> tf.Tensor:
        """Returns the mean loss times the scale, float32 ()."""
        return total * (self._scale / tf.maximum(tokens, 1.0))

    def unscale_gradients(
        self, gradients: Sequence[tf.Tensor], tokens: tf.Tensor
    ) -> list[tf.Tensor]:
        """Converts gradients of the scaled loss to those of the loss sum, float32."""
        factor = tf.maximum(tokens, 1.0) / self._scale
        return [tf.cast(g, tf.float32) * factor for g in gradients]

    def update(self, finite: tf.Tensor) -> None:
        """Halves the scale after an overflow, doubles it after 2,000 finite steps."""
        count = tf.where(finite, self._finite_steps + 1.0, 0.0)
        grows = count >= FINITE_STEPS_TO_GROW
        factor = tf.where(finite, tf.where(grows, 2.0, 1.0), 0.5)
        values = (tf.maximum(self._scale * factor, 1.0), tf.where(grows, 0.0, count))

        def assign(strategy: tf.distribute.Strategy, *values: tf.Tensor) -> None:
            for variable, value in zip(self.state().values(), values, strict=True):
                strategy.extended.update(
                    variable, lambda one, new: one.assign(new), args=(value,)
                )

        tf.distribute.get_replica_context().merge_call(assign, args=values)


def make_loss_scale(precision: str) -> LossScale:
    """Returns the loss scaling for a precision; only float16 has a scale."""
    return DynamicLossScale() if precision == "float16" else LossScale()
