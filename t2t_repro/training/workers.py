"""What the processes of one training agree on: when to stop, and where they are."""

from collections.abc import Iterator
from contextlib import contextmanager

import tensorflow as tf

from t2t_repro.system.errors import UserError

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

        @tf.function(input_signature=[tf.TensorSpec([2], tf.float64)])
        def total(values: tf.Tensor) -> tf.Tensor:
            def replica_total(values: tf.Tensor) -> tf.Tensor:
                context = tf.distribute.get_replica_context()
                # A copy on this replica's device; an argument is on none.
                own = tf.identity(values)
                return context.all_reduce(tf.distribute.ReduceOp.SUM, own)

            results = strategy.run(replica_total, args=(values,))
            return strategy.experimental_local_results(results)[0]

        self._total = total
        self._replicas = strategy.num_replicas_in_sync

    def any(self, flag: bool) -> bool:
        """Says whether one worker's flag is set; all must ask together."""
        return self._sum(float(flag))[0] > 0 if self.are_many else flag

    def wait(self) -> None:
        """Returns when all workers have come here."""
        self.any(False)

    def require_same_step(self, step: int) -> None:
        """Raises UserError unless all workers have restored the same checkpoint."""
        if not self.are_many:
            return
        total, squares = self._sum(float(step))
        # Equal only where all are the same (Cauchy and Schwarz).
        if self._replicas * squares != total**2:
            raise UserError(
                f"this worker found the checkpoint of step {step:,}, others another: "
                "--model_dir must be a folder that all workers share"
            )

    def _sum(self, value: float) -> tuple[float, float]:
        """Sums a value, and its square, over all replicas of all workers."""
        with self.gone_is_told():
            total, squares = self._total(tf.constant([value, value**2], tf.float64))
            return float(total), float(squares)

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
