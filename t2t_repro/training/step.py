"""One update of the weights from one global batch."""

from dataclasses import dataclass

import tensorflow as tf

from t2t_repro.hparams import HParams
from t2t_repro.models.transformer import Transformer, named_variables
from t2t_repro.training.loss_scale import loss_scale_for
from t2t_repro.training.losses import loss_sum
from t2t_repro.training.optimizer import Adam
from t2t_repro.training.schedule import Schedule

BATCH_SIGNATURE = (
    tf.TensorSpec([None, None], tf.int32),
    tf.TensorSpec([None, None], tf.int32),
)


@dataclass(frozen=True)
class StepResult:
    """What one update reports, each float32 ().

    An update whose loss or gradient is not finite is skipped: weights and moments
    stay as they are, bit for bit.

    Attributes:
        loss: the mean training loss over the global batch's symbols, nats.
        tokens: the number of target symbols in the global batch, EOS included.
        share: non-padding tokens of both sides over rows x (source + target).
        gradient_norm: the norm of the global gradient.
        rate: the learning rate.
    """

    loss: tf.Tensor
    tokens: tf.Tensor
    share: tf.Tensor
    gradient_norm: tf.Tensor
    rate: tf.Tensor


class TrainStep:
    """Computes gradients on every replica, sums them, and updates.

    A loss is a sum and a token count; the sum of gradients is divided once, by the
    count over all replicas and micro-batches, so that the result does not depend on
    how the batch was cut.

    Create it inside the strategy's scope.

    Args:
        model: the model, already built.
        hparams: smoothing, schedule, Adam, seed, the bound on a micro-batch, the
            precision that the model was built in, and whether XLA compiles it.
        accumulate: whether batches are cut into micro-batches of at most
            ``hparams.max_tokens_per_device`` positions a side.
    """

    def __init__(self, model: Transformer, hparams: HParams, accumulate: bool) -> None:
        self.model = model
        self.hparams = hparams
        self.accumulate = accumulate
        self._variables = [v.value for v in named_variables(model).values()]
        self.optimizer = Adam(
            named_variables(model),
            hparams.adam_beta1,
            hparams.adam_beta2,
            hparams.adam_epsilon,
        )
        self.schedule = Schedule(
            hparams.learning_rate_schedule,
            hparams.d_model,
            hparams.warmup_steps,
            hparams.learning_rate_scale,
        )
        self.loss_scale = loss_scale_for(hparams.precision)
        # The update itself has fixed shapes and is one kernel a variable as it is.
        self._differentiate = (
            tf.function(self._gradients, jit_compile=True, autograph=False)
            if hparams.xla
            else self._gradients
        )

    def state(self) -> dict[str, tf.Variable]:
        """Returns all that a checkpoint has to hold beside the weights, by name."""
        return self.optimizer.state() | self.loss_scale.state()

    def replica_step(
        self, inputs: tf.Tensor, targets: tf.Tensor, step: tf.Tensor
    ) -> tuple[tf.Tensor, ...]:
        """Takes one replica's part in the update from a global batch.

        Every replica is given the whole batch, a few hundred kilobytes, and takes
        its own rows: there is no distributed iterator whose place is lost on a
        restart.

        Args:
            inputs: int32 (rows, source), the global batch.
            targets: int32 (rows, target), the global batch.
            step: int32 (), the number of updates done before.

        Returns:
            The fields of a `StepResult`, in order.
        """
        context = tf.distribute.get_replica_context()
        share = _share_of_tokens(inputs, targets)
        inputs, targets = _own_rows(inputs), _own_rows(targets)
        if self.accumulate:
            total, tokens, gradients = self._accumulated(inputs, targets, step)
        else:
            seed = self._dropout_seed(step, 0)
            total, tokens, gradients = self._differentiate(inputs, targets, seed)
        total, tokens, *gradients = context.all_reduce(
            tf.distribute.ReduceOp.SUM, [total, tokens, *gradients]
        )
        count = tf.maximum(tokens, 1.0)
        norm = tf.linalg.global_norm(gradients) / count
        # The gradient too: it can overflow where the loss does not.
        finite = tf.math.is_finite(total) & tf.math.is_finite(norm)
        divisor = count
        if self.hparams.clip_norm:
            divisor *= tf.maximum(norm / self.hparams.clip_norm, 1.0)
        # A division without NaN is 0 where the divisor is, whatever is divided.
        divisor = tf.where(finite, divisor, 0.0)
        gradients = [tf.math.divide_no_nan(g, divisor) for g in gradients]
        rate = self.schedule(step)
        self.optimizer.apply(gradients, step, rate, finite)
        self.loss_scale.update(finite)
        return total / count, tokens, share, norm, rate

    def _gradients(
        self, inputs: tf.Tensor, targets: tf.Tensor, seed: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, list[tf.Tensor]]:
        """Returns the loss summed, the token count, and the sum's gradients."""
        with tf.GradientTape() as tape:
            logits = self.model(inputs, targets, seed=seed)
            total, tokens = loss_sum(logits, targets, self.hparams.label_smoothing)
            scaled = self.loss_scale.scaled(total, tokens)
        gradients = tape.gradient(scaled, self._variables)
        # The shared table gets slices from the embedding and a dense part from the
        # softmax; dense everywhere keeps every strategy on one path.
        dense = [tf.convert_to_tensor(g) for g in gradients]
        return total, tokens, self.loss_scale.unscaled(dense, tokens)

    def _accumulated(
        self, inputs: tf.Tensor, targets: tf.Tensor, step: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, list[tf.Tensor]]:
        """Like `_gradients`, over micro-batches one after the other."""
        rows = tf.shape(inputs)[0]
        longest = tf.maximum(tf.shape(inputs)[1], tf.shape(targets)[1])
        size = tf.maximum(self.hparams.max_tokens_per_device // longest, 1)
        count = (rows + size - 1) // size

        def add_micro_batch(
            index: tf.Tensor, total: tf.Tensor, tokens: tf.Tensor, *sums: tf.Tensor
        ) -> tuple[tf.Tensor, ...]:
            part = slice(index * size, (index + 1) * size)
            seed = self._dropout_seed(step, index)
            more = self._differentiate(inputs[part], targets[part], seed)
            added = [a + b for a, b in zip(sums, more[2], strict=True)]
            return index + 1, total + more[0], tokens + more[1], *added

        zeros = [tf.zeros(v.shape, v.dtype) for v in self._variables]
        _, total, tokens, *gradients = tf.while_loop(
            lambda index, *_: index < count,
            add_micro_batch,
            (tf.constant(0), tf.constant(0.0), tf.constant(0.0), *zeros),
            parallel_iterations=1,
        )
        return total, tokens, gradients

    def _dropout_seed(self, step: tf.Tensor, micro_batch: tf.Tensor | int) -> tf.Tensor:
        """Makes a seed, int32 (2,), from run, step, replica and micro-batch."""
        context = tf.distribute.get_replica_context()
        replica = tf.cast(context.replica_id_in_sync_group, tf.int32)
        run = tf.constant(self.hparams.seed * 1_000_003 % 2**31, tf.int32)
        return tf.stack([step, run + replica * 10_007 + micro_batch])


def _own_rows(batch: tf.Tensor) -> tf.Tensor:
    """Returns this replica's rows of a global batch, int32 (rows, length)."""
    context = tf.distribute.get_replica_context()
    replicas = context.num_replicas_in_sync
    if replicas == 1:
        return batch
    rows = tf.shape(batch)[0]
    replica = tf.cast(context.replica_id_in_sync_group, tf.int32)
    return batch[rows * replica // replicas : rows * (replica + 1) // replicas]


def _share_of_tokens(inputs: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
    """Returns the share of positions that are not padding, float32 ()."""
    symbols = tf.math.count_nonzero(inputs) + tf.math.count_nonzero(targets)
    positions = tf.size(inputs) + tf.size(targets)
    return tf.cast(symbols, tf.float32) / tf.cast(positions, tf.float32)
