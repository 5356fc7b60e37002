"""One update of the weights from one global batch."""

from dataclasses import dataclass

import tensorflow as tf

from t2t_repro.batches.packed_batch import rectangle
from t2t_repro.hparams import HParams
from t2t_repro.layers.seeded_dropout import dropout_seed
from t2t_repro.models.halves import HALVES, sum_over_halves
from t2t_repro.models.transformer import Transformer
from t2t_repro.models.variables import named_variables
from t2t_repro.training.loss_scale import loss_scale_for
from t2t_repro.training.losses import loss_sum
from t2t_repro.training.optimizer import Adam
from t2t_repro.training.schedules import Schedule


@dataclass(frozen=True)
class StepResult:
    """What one update reports.

    Where loss or gradient is not finite it is skipped: no weight or moment changes.
    """

    loss: float  # The mean over the global batch's symbols, nats.
    tokens: float  # Target symbols in the global batch, EOS included.
    token_ratio: float  # Non-padding tokens over rows x (source + target).
    gradient_norm: float  # Of the global gradient.
    rate: float


class TrainStep:
    """Computes gradients on every replica, sums them, and updates.

    The sum is divided once, by the token count over all replicas and parts, so that the
    result does not depend on how the batch was cut. Create it inside the strategy's
    scope, with a built model. `accumulate` says whether batches have several
    micro-batches.
    """

    def __init__(self, model: Transformer, hparams: HParams, accumulate: bool) -> None:
        hparams = hparams.resolve_auto()
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
        # A function of its own is traced once for both halves, and, as it is not
        # inlined, the graph of the update does not grow with them. XLA gets it alone:
        # the update has fixed shapes and is one kernel a variable as it is.
        self._differentiate = tf.function(
            self._gradients,
            jit_compile=hparams.xla or None,
            autograph=False,
            experimental_attributes={"_noinline": True},
        )

    def state(self) -> dict[str, tf.Variable]:
        """Returns all that a checkpoint has to hold beside the weights, by name."""
        return self.optimizer.state() | self.loss_scale.state()

    def replica_step(
        self, batch: dict[str, tf.Tensor], step: tf.Tensor
    ) -> tuple[tf.Tensor, ...]:
        """Takes one replica's share in an update; returns a `StepResult` of float32 ().

        Every replica is given its process's parts of a batch, a few hundred kilobytes
        (`packed_batch.SIGNATURE`), and takes its own (`packed_batch.parts_of`):
        there is no distributed iterator whose place is lost on a restart. `step`,
        int32 (), is the number of updates done before.
        """
        context = tf.distribute.get_replica_context()
        replica = tf.cast(context.replica_id_in_sync_group, tf.int32)
        replicas = context.num_replicas_in_sync
        if self.accumulate:
            found = self._accumulated(batch, step, replica, replicas)
        else:
            found = self._of_piece(batch, step, replica, replicas)
        total, tokens, gradients = found
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
        return total / count, tokens, batch["token_ratio"], norm, rate

    def _gradients(
        self, inputs: tf.Tensor, targets: tf.Tensor, seed: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, list[tf.Tensor]]:
        """Returns the loss summed, the token count, and the sum's gradients."""
        with tf.GradientTape() as tape, dropout_seed(seed):
            logits = self.model({"inputs": inputs, "targets": targets}, training=True)
            total, tokens = loss_sum(
                logits,
                targets,
                self.hparams.label_smoothing,
                self.hparams.label_smoothing_form,
                without_padding=self.hparams.softmax_bias,
            )
            scaled = self.loss_scale.scaled(total, tokens)
        gradients = tape.gradient(scaled, self._variables)
        # The shared table gets slices from the embedding and a dense part from the
        # softmax; dense everywhere keeps every strategy on one path.
        dense = [tf.convert_to_tensor(g) for g in gradients]
        return total, tokens, self.loss_scale.unscaled(dense, tokens)

    def _of_piece(
        self,
        batch: dict[str, tf.Tensor],
        step: tf.Tensor,
        piece: tf.Tensor,
        cuts: tf.Tensor | int,
    ) -> tuple[tf.Tensor, tf.Tensor, list[tf.Tensor]]:
        """Like `_gradients`, of one piece; a micro-batch is cut into `cuts` of them."""
        number, cut = piece // cuts, piece % cuts
        inputs, targets = (_rows(side, cut, cuts) for side in rectangle(batch, number))
        seeds = self._dropout_seeds(step, number, cut)
        return sum_over_halves(self._differentiate, inputs, targets, seeds)

    def _accumulated(
        self,
        batch: dict[str, tf.Tensor],
        step: tf.Tensor,
        replica: tf.Tensor,
        replicas: int,
    ) -> tuple[tf.Tensor, tf.Tensor, list[tf.Tensor]]:
        """Like `_gradients`, over a replica's pieces of a batch, one after the other.

        Replicas take whole parts, which keep them busy; too few are cut by rows.
        """
        parts = tf.shape(batch["inputs"])[0]
        cuts = tf.maximum(replicas // parts, 1)

        def add_piece(
            piece: tf.Tensor, total: tf.Tensor, tokens: tf.Tensor, *sums: tf.Tensor
        ) -> tuple[tf.Tensor, ...]:
            more = self._of_piece(batch, step, piece, cuts)
            added = [a + b for a, b in zip(sums, more[2], strict=True)]
            return piece + replicas, total + more[0], tokens + more[1], *added

        zeros = [tf.zeros(v.shape, v.dtype) for v in self._variables]
        _, total, tokens, *gradients = tf.while_loop(
            lambda piece, *_: piece < parts * cuts,
            add_piece,
            (replica, tf.constant(0.0), tf.constant(0.0), *zeros),
            parallel_iterations=1,
        )
        return total, tokens, gradients

    def _dropout_seeds(
        self, step: tf.Tensor, number: tf.Tensor, cut: tf.Tensor
    ) -> tf.Tensor:
        """Makes a seed for each half of a piece, int32 (2, 2).

        An uncut micro-batch has the same seeds on whichever replica.
        """
        run = tf.constant(self.hparams.seed * 1_000_003 % 2**31, tf.int32)
        halves = cut * HALVES + tf.range(HALVES)
        own = run + number + halves * 10_007
        return tf.stack([tf.fill([HALVES], step), own], axis=1)


def _rows(side: tf.Tensor, cut: tf.Tensor, cuts: tf.Tensor | int) -> tf.Tensor:
    """Returns one of so many equal cuts of a rectangle, int32 (rows, length).

    The number of rows is even. Filler rows, all zeros, add nothing to sums; all cuts
    have the same shape.
    """
    rows, halves = tf.shape(side)[0], cuts * HALVES
    each = (rows + halves - 1) // halves * HALVES
    whole = tf.pad(side, [[0, each * cuts - rows], [0, 0]])
    return whole[cut * each : (cut + 1) * each]
