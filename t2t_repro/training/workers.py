"""Communication between the processes of one training run."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import tensorflow as tf

from t2t_repro.batches.packed_batch import select_microbatches
from t2t_repro.system.errors import UserError
from t2t_repro.training.strategy import find_process

# TensorFlow's exceptions in a worker after another worker has ended.
_GONE = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.InternalError,
    tf.errors.FailedPreconditionError,
)


class WorkerGoneError(UserError):
    """Raised if another worker has ended or cannot be reached.

    Its exit status is that of temporary failures (EX_TEMPFAIL of sysexits.h), so that
    job schedulers can distinguish it from mistakes, which would recur.
    """

    exit_status = 75


class Workers:
    """Collective operations over the processes of a training run.

    All workers must call the same methods in the same order. Methods raise
    WorkerGoneError if another worker has ended. Strategies other than
    MultiWorkerMirroredStrategy have a single process, which does not communicate.

    Args:
        strategy: Distribution strategy of the training run.
        whole: Whether replicas never share a micro-batch.
    """

    def __init__(self, strategy: tf.distribute.Strategy, whole: bool = False) -> None:
        self._whole = whole
        self.is_distributed = isinstance(
            strategy, tf.distribute.MultiWorkerMirroredStrategy
        )
        self.number, self.count = find_process(strategy)
        self._replicas = strategy.num_replicas_in_sync
        self._replicas_each = replicas_each = self._replicas // self.count

        # One graph serves all variables; TensorFlow would warn of one for each shape.
        signature = tf.TensorSpec([None], tf.float64), tf.TensorSpec([], tf.bool)

        @tf.function(input_signature=signature, autograph=False)
        def total(values: tf.Tensor, counts: tf.Tensor) -> tf.Tensor:
            def replica_total(values: tf.Tensor, counts: tf.Tensor) -> tf.Tensor:
                context = tf.distribute.get_replica_context()
                first = context.replica_id_in_sync_group % replicas_each == 0
                # -0.0 is the exact neutral element: x + -0.0 is x, also if x is -0.0.
                # Unlike an argument, the result of `where` is on the replica's device.
                own = tf.where(first & counts, values, tf.constant(-0.0, values.dtype))
                return context.all_reduce(tf.distribute.ReduceOp.SUM, own)

            results = strategy.run(replica_total, args=(values, counts))
            return strategy.experimental_local_results(results)[0]

        self._total = total

    def own_microbatches(self, count: int) -> set[int]:
        """Returns the indices of this worker's micro-batches, below `count`."""
        first = self.number * self._replicas_each
        own = range(first, first + self._replicas_each)
        return select_microbatches(own, self._replicas, count, self._whole)

    def any(self, flag: bool) -> bool:
        """Returns whether the flag of at least one worker is set."""
        return self.sums([float(flag)])[0] > 0 if self.is_distributed else flag

    def wait(self) -> None:
        """Waits until all workers have called this method."""
        self.any(False)

    def sums(self, values: Sequence[float]) -> list[float]:
        """Returns the sum of each value over all workers, computed in float64."""
        if not self.is_distributed:
            return list(values)
        with self.convert_errors():
            local = tf.constant(values, tf.float64)
            return [float(v) for v in self._total(local, tf.constant(True))]

    def broadcast(self, values: tf.Tensor) -> tf.Tensor:
        """Returns the chief's values, bit-identical, on all workers.

        Args:
            values: float, with the same shape and dtype on all workers.
        """
        if not self.is_distributed:
            return values
        flat = tf.cast(tf.reshape(values, [-1]), tf.float64)  # All floats fit in it.
        with self.convert_errors():
            result = self._total(flat, tf.constant(self.number == 0))
        return tf.cast(tf.reshape(result, tf.shape(values)), values.dtype)

    @contextmanager
    def convert_errors(self) -> Iterator[None]:
        """Converts TensorFlow's errors about an ended worker to WorkerGoneError."""
        try:
            yield
        except _GONE as error:
            if not self.is_distributed:
                raise
            reason = str(error.message).rpartition("aborted by: ")[2]
            raise WorkerGoneError(
                "another worker of this training has ended or cannot be reached; run "
                "the same command on all workers to resume from the newest checkpoint "
                f"({reason.partition(chr(10))[0][:200]})"
            ) from None
