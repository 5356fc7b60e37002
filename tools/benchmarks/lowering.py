"""Programs of training steps as TensorFlow passes them to XLA for a GPU."""

from typing import Any
from unittest import mock

import keras
import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import compiler_ir

from t2t_repro.hparams import HParams
from t2t_repro.models.halves import HALVES
from t2t_repro.models.precision import mixed_precision
from t2t_repro.models.variables import named_variables
from t2t_repro.runs.model_dir import build_model
from t2t_repro.training.step import TrainStep


def lowered(hparams: HParams, rows: int, length: int) -> bytes:
    """Returns the program of the loss and the gradients of one micro-batch.

    It is the function that `TrainStep` compiles, with the weights as arguments, because
    TensorFlow cannot lower variables for a device that is absent.

    Args:
        hparams: Hyper-parameters.
        rows: Number of rows of the micro-batch.
        length: Number of positions per side of a row.

    Returns:
        Serialized HLO module. Its arguments are the weights, the ids of both sides,
        int32 (rows, length), and the dropout seeds, int32 (2, 2).
    """
    with mixed_precision(hparams.precision):
        model = build_model(hparams, hparams.vocab_size)
    step = TrainStep(model, hparams, accumulate=False)
    variables = list(named_variables(model).values())

    @tf.function(jit_compile=True, autograph=False)
    def gradients(weights: list[Any], *arguments: Any) -> Any:
        class Tape(tf.GradientTape):  # type: ignore[misc]
            """Watches the weights, which are not variables here."""

            def __enter__(self) -> Any:
                tape = super().__enter__()
                tape.watch(weights)
                return tape

        with (
            keras.StatelessScope(zip(variables, weights, strict=True)),
            mock.patch.object(step, "_variables", weights),
            mock.patch.object(tf, "GradientTape", Tape),
        ):
            return step._gradients(*arguments)

    weights = [tf.TensorSpec(v.shape, tf.float32) for v in variables]
    side = tf.TensorSpec([rows, length], tf.int32)
    others = [side, side, tf.TensorSpec([HALVES, 2], tf.int32)]
    traced = gradients.get_concrete_function(weights, *others)
    compiler = compiler_ir.from_concrete_function(traced, [*weights, *others])
    program: bytes = compiler(stage="hlo_serialized", platform_name="GPU")
    return program
