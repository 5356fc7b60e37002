"""What the processes of one training tell each other."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import tensorflow as tf

from t2t_repro.batches.packed_batch import parts_of
from t2t_repro.system.errors import UserError
from t2t_repro.training.strategy import process_of

# What TensorFlow raises in a worker when another one is gone.
_GONE = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.InternalError,
    tf.errors.FailedPreconditionError,
)


class WorkerGoneError(UserError):
    """Another worker of the training ended or cannot be reached."""


class Workers:
    """A training's processes; methods raise WorkerGoneError if one is gone.

    Any strategy but MultiWorkerMirroredStrategy is one process, which agrees at once.
    """

    def __init__(self, strategy: tf.distribute.Strategy) -> None:
        self.are_many = isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)
        self.number, self.count = process_of(strategy) if self.are_many else (0, 1)
        self._replicas = strategy.num_replicas_in_sync
        replicas_each = self._replicas // self.count

        @tf.function(autograph=False)
        def total(values: tf.Tensor, counts: tf.Tensor) -> tf.Tensor:
            def replica_total(values: tf.Tensor, counts: tf.Tensor) -> tf.Tensor:
                context = tf.distribute.get_replica_context()
                first = context.replica_id_in_sync_group % replicas_each == 0
                # Adding -0.0 changes no bit of any number, not even of 0.0. A copy on
                # this replica's device, too; an argument is on none.
                own = tf.where(first & counts, values, tf.constant(-0.0, values.dtype))
                return context.all_reduce(tf.distribute.ReduceOp.SUM, own)

            results = strategy.run(replica_total, args=(values, counts))
            return strategy.experimental_local_results(results)[0]

        self._total = total

    def own_parts(self, parts: int) -> set[int]:
        """Returns which parts, of a batch of so many, this worker computes."""
        each = self._replicas // self.count
        own = range(self.number * each, (self.number + 1) * each)
        return parts_of(own, self._replicas, parts)

    def any(self, flag: bool) -> bool:
        """Says whether one worker's flag is set; all must ask together."""
        return self.sums([float(flag)])[0] > 0 if self.are_many else flag

    def wait(self) -> None:
        """Returns when all workers have come here."""
        self.any(False)

    def sums(self, values: Sequence[float]) -> list[float]:
        """Adds each value up over all workers, in float64."""
        if not self.are_many:
            return list(values)
        with self.gone_is_told():
            ours = tf.constant(values, tf.float64)
            return [float(v) for v in self._total(ours, tf.constant(True))]

    def from_chief(self, values: tf.Tensor) -> tf.Tensor:
        """Returns what the chief passes, bit for bit; all pass floats of one shape."""
        if not self.are_many:
            return values
        with self.gone_is_told():
            return self._total(values, tf.constant(self.number == 0))

    @contextmanager
    def gone_is_told(self) -> Iterator[None]:
        """Turns what TensorFlow raises when a worker is gone into WorkerGoneError."""
        try:
            yield
        except _GONE as error:
            if not self.are_many:
                raise
            reason = str(error.message).rpartition("aborted by: ")[2]
            raise WorkerGoneError(
                "another worker of this training is gone or cannot be reached, so it "
                "stops here; the same command on all workers goes on from the newest "
                f"checkpoint ({reason.partition(chr(10))[0][:200]})"
            ) from None
