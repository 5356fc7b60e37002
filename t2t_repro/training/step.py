"""Training step: one update of the weights from one global batch."""

import math
from dataclasses import dataclass

import tensorflow as tf

from t2t_repro.batches.packed_batch import rectangle
from t2t_repro.hparams import HParams
from t2t_repro.layers.label_smoothing import loss_of_output
from t2t_repro.layers.seeded_dropout import dropout_seed
from t2t_repro.models.halves import HALVES, sum_over_halves
from t2t_repro.models.packing import packed_features
from t2t_repro.models.transformer import Transformer
from t2t_repro.models.variables import find_frozen, named_variables
from t2t_repro.training.loss_scale import make_loss_scale
from t2t_repro.training.losses import LabelSmoothedCrossEntropy
from t2t_repro.training.optimizer import make_optimizer
from t2t_repro.training.ordered_sums import (
    GROUPS,
    flatten,
    sum_microbatches,
    sum_replicas,
    unflatten,
)
from t2t_repro.training.schedules import Schedule
from t2t_repro.training.weight_average import WeightAverage


@dataclass(frozen=True)
class StepResult:
    """Results of a step.

    A step whose loss or gradient is not finite changes no weight or moment.

    Attributes:
        loss: Mean loss of the tokens in the global batch, in nats.
        tokens: Number of target tokens in the global batch, including EOS.
        token_ratio: Ratio of non-padding tokens to positions, over both sides.
        gradient_norm: Norm of the global gradient before clipping.
        rate: Learning rate.
    """

    loss: float
    tokens: float
    token_ratio: float
    gradient_norm: float
    rate: float


class TrainStep:
    """Computes gradients on all replicas, sums them and updates the weights.

    The sum is divided once by the token count over all replicas and micro-batches, so
    that the result does not depend on the division of the batch. Create it inside the
    strategy's scope.

    Args:
        model: Built model.
        hparams: Hyper-parameters.
        accumulate: Whether a batch may have several micro-batches.
        ordered: Whether 1, 2, 4 and 8 replicas compute the same bits (see
            `ordered_sums`). Replicas then never share a micro-batch.
    """

    def __init__(
        self,
        model: Transformer,
        hparams: HParams,
        accumulate: bool,
        ordered: bool = False,
    ) -> None:
        hparams = hparams.resolve_auto()
        self.model = model
        self.hparams = hparams
        self.accumulate = accumulate
        self.ordered = ordered
        variables = named_variables(model)
        for name in find_frozen(variables, hparams.freeze):
            del variables[name]
        self._variables = [variable.value for variable in variables.values()]
        self.optimizer = make_optimizer(variables, hparams)
        self.average = WeightAverage(named_variables(model), hparams.ema_decay)
        self.schedule = Schedule.from_hparams(hparams)
        self.loss = LabelSmoothedCrossEntropy(
            hparams.label_smoothing,
            hparams.label_smoothing_form,
            without_padding=hparams.softmax_bias,
        )
        self.loss_scale = make_loss_scale(hparams.precision)
        # `sum_over_halves` may call this function twice. It is not inlined, so the two
        # calls share one graph. XLA compiles only this function: Adam has fixed shapes
        # and already runs one kernel per variable.
        self._differentiate = tf.function(
            self._gradients,
            jit_compile=hparams.xla or None,
            autograph=False,
            experimental_attributes={"_noinline": True},
        )
        # All groups of micro-batches share this function's graph.
        self._flat_sums = tf.function(
            self._sum_microbatch,
            autograph=False,
            experimental_attributes={"_noinline": True},
        )

    def state(self) -> dict[str, tf.Variable]:
        """Returns the variables of optimizer, average and loss scale, by name."""
        average = self.average.state()
        return self.optimizer.state() | average | self.loss_scale.state()

    def replica_step(
        self, batch: dict[str, tf.Tensor], step: tf.Tensor
    ) -> tuple[tf.Tensor, ...]:
        """Runs the step on one replica.

        All replicas of a process receive the same batch (a few hundred kilobytes) and
        select their micro-batches (`packed_batch.select_microbatches`). A distributed
        iterator would lose its position on restart.

        Args:
            batch: Micro-batches of this process, see `packed_batch.SIGNATURE`.
            step: int32 (), number of earlier steps.

        Returns:
            The values of `StepResult`, float32 () each, equal on all replicas.
        """
        context = tf.distribute.get_replica_context()
        replica = tf.cast(context.replica_id_in_sync_group, tf.int32)
        replicas = context.num_replicas_in_sync
        if self.ordered:
            total, tokens, *gradients = self._sum_in_order(batch, step)
        else:
            compute = (
                self._accumulate_gradients if self.accumulate else self._slice_gradients
            )
            total, tokens, gradients = compute(batch, step, replica, replicas)
            total, tokens, *gradients = context.all_reduce(
                tf.distribute.ReduceOp.SUM, [total, tokens, *gradients]
            )
        count = tf.maximum(tokens, 1.0)
        norm = tf.linalg.global_norm(gradients) / count
        # The gradient can overflow even if the loss is finite.
        finite = tf.math.is_finite(total) & tf.math.is_finite(norm)
        divisor = count
        if self.hparams.clip_norm:
            divisor *= tf.maximum(norm / self.hparams.clip_norm, 1.0)
        # divide_no_nan returns 0 for a divisor of 0, even if the dividend is NaN.
        divisor = tf.where(finite, divisor, 0.0)
        gradients = [tf.math.divide_no_nan(g, divisor) for g in gradients]
        rate = self.schedule(step)
        self.optimizer.apply(gradients, step, rate, finite)
        self.average.update(finite)
        self.loss_scale.update(finite)
        return total / count, tokens, batch["token_ratio"], norm, rate

    def _gradients(
        self, inputs: tf.Tensor, targets: tf.Tensor, seed: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, list[tf.Tensor]]:
        """Computes the loss sum, the number of tokens and the loss sum's gradients."""
        features = {"inputs": inputs, "targets": targets}
        if self.hparams.batching == "packed":
            features = packed_features(inputs, targets)
        with tf.GradientTape() as tape, dropout_seed(seed):
            x = self.model(features, training=True, project=False)
            table = self.model.softmax_table
            total, tokens = loss_of_output(table, x, targets, self.loss.sum_and_count)
            scaled = self.loss_scale.scale_loss(total, tokens)
        gradients = tape.gradient(scaled, self._variables)
        # The gradient of an embedding is sparse, that of the softmax is dense. With
        # dense gradients only, all strategies use the same code path.
        dense = [tf.convert_to_tensor(g) for g in gradients]
        return total, tokens, self.loss_scale.unscale_gradients(dense, tokens)

    def _slice_gradients(
        self,
        batch: dict[str, tf.Tensor],
        step: tf.Tensor,
        index: tf.Tensor,
        slices: tf.Tensor | int,
    ) -> tuple[tf.Tensor, tf.Tensor, list[tf.Tensor]]:
        """Computes `_gradients` for one slice of rows of a micro-batch.

        Each micro-batch has `slices` slices; `index` numbers the slices of all
        micro-batches consecutively.
        """
        number, place = index // slices, index % slices
        sides = rectangle(batch, number)
        inputs, targets = (_rows(side, place, slices) for side in sides)
        seeds = self._dropout_seeds(step, number, place)
        return sum_over_halves(self._differentiate, inputs, targets, seeds)

    def _accumulate_gradients(
        self,
        batch: dict[str, tf.Tensor],
        step: tf.Tensor,
        replica: tf.Tensor,
        replicas: int,
    ) -> tuple[tf.Tensor, tf.Tensor, list[tf.Tensor]]:
        """Sums `_gradients` over a replica's micro-batches, one after the other.

        If there are more replicas than micro-batches, each replica gets a slice of the
        rows of a micro-batch.
        """
        micro_batches = tf.shape(batch["inputs"])[0]
        slices = tf.maximum(replicas // micro_batches, 1)

        def add_slice(
            index: tf.Tensor, total: tf.Tensor, tokens: tf.Tensor, *sums: tf.Tensor
        ) -> tuple[tf.Tensor, ...]:
            more = self._slice_gradients(batch, step, index, slices)
            added = [a + b for a, b in zip(sums, more[2], strict=True)]
            return index + replicas, total + more[0], tokens + more[1], *added

        zeros = [tf.zeros(v.shape, v.dtype) for v in self._variables]
        _, total, tokens, *gradients = tf.while_loop(
            lambda index, *_: index < micro_batches * slices,
            add_slice,
            (replica, tf.constant(0.0), tf.constant(0.0), *zeros),
            parallel_iterations=1,
        )
        return total, tokens, gradients

    def _sum_in_order(
        self, batch: dict[str, tf.Tensor], step: tf.Tensor
    ) -> list[tf.Tensor]:
        """Sums losses, tokens and gradients over the micro-batches of all replicas.

        Replicas take whole micro-batches, and the bits do not depend on their number.
        """
        context = tf.distribute.get_replica_context()
        shapes = [[], [], *(v.shape.as_list() for v in self._variables)]
        sums = sum_microbatches(
            lambda number: self._flat_sums(batch, step, number),
            sum(map(math.prod, shapes)),
            tf.cast(context.replica_id_in_sync_group, tf.int32),
            # A single micro-batch needs no sums of groups.
            context.num_replicas_in_sync if self.accumulate else GROUPS,
            tf.shape(batch["inputs"])[0],
        )
        return unflatten(sum_replicas(sums), shapes)

    def _sum_microbatch(
        self, batch: dict[str, tf.Tensor], step: tf.Tensor, number: tf.Tensor
    ) -> tf.Tensor:
        """Computes `_gradients` for a whole micro-batch, as one vector."""
        total, tokens, gradients = self._slice_gradients(batch, step, number, 1)
        return flatten([total, tokens, *gradients])

    def _dropout_seeds(
        self, step: tf.Tensor, number: tf.Tensor, place: tf.Tensor
    ) -> tf.Tensor:
        """Returns the dropout seeds for `sum_over_halves`, int32 (2, 2).

        The seeds of a micro-batch with a single slice do not depend on its replica.

        Args:
            step: int32 (), number of earlier steps.
            number: int32 (), index of the micro-batch.
            place: int32 (), index of the slice within the micro-batch.
        """
        run = tf.constant(self.hparams.seed * 1_000_003 % 2**31, tf.int32)
        halves = place * HALVES + tf.range(HALVES)
        seeds = run + number + halves * 10_007
        return tf.stack([tf.fill([HALVES], step), seeds], axis=1)


def _rows(side: tf.Tensor, place: tf.Tensor, slices: tf.Tensor | int) -> tf.Tensor:
    """Returns the slice with index `place` of one side's rows, int32 (rows, length).

    All slices have the same, even number of rows. The last ones are filled up with rows
    of padding, which add nothing to the sums.
    """
    rows, halves = tf.shape(side)[0], slices * HALVES
    each = (rows + halves - 1) // halves * HALVES
    padded = tf.pad(side, [[0, each * slices - rows], [0, 0]])
    return padded[place * each : (place + 1) * each]
