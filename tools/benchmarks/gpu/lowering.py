"""TensorFlow's own program of a training step, as XLA gets it for a GPU."""

from typing import Any

import keras
import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import compiler_ir

from t2t_repro import hparams as hparam_sets
from t2t_repro.layers.seeded_dropout import dropout_seed
from t2t_repro.models.halves import HALVES
from t2t_repro.models.precision import mixed_precision
from t2t_repro.models.variables import named_variables
from t2t_repro.runs.model_dir import build_model
from t2t_repro.training.losses import loss_sum


def lowered(size: str, rows: int, length: int, precision: str) -> bytes:
    """Returns forward and backward of one part, loss included: an HLO module.

    The graph is `TrainStep`'s, of `rows` pairs of `length` positions a side, with the
    weights as arguments: XLA looks up the device of variables, which is absent.

    Args:
        size: a hyper-parameter set.
        rows: sentence pairs.
        length: positions of each side.
        precision: of products and activations.
    """
    hparams = hparam_sets.load(size).replace(precision=precision)
    with mixed_precision(precision):
        model = build_model(hparams, hparams.vocab_size)
    variables = list(named_variables(model).values())

    @tf.function(jit_compile=True, autograph=False)
    def gradients(weights: list[Any], inputs: Any, targets: Any, seed: Any) -> Any:
        replaced = zip(variables, weights, strict=True)
        with (
            tf.GradientTape() as tape,
            dropout_seed(seed),
            keras.StatelessScope(state_mapping=replaced),
        ):
            tape.watch(weights)
            logits = model({"inputs": inputs, "targets": targets}, training=True)
            total, tokens = loss_sum(logits, targets, hparams.label_smoothing)
        found = tape.gradient(total, weights)
        return total, tokens, [tf.convert_to_tensor(each) for each in found]

    weights = [tf.TensorSpec(v.shape, tf.float32) for v in variables]
    side = tf.TensorSpec([rows, length], tf.int32)
    seed = tf.TensorSpec([HALVES, 2], tf.int32)
    traced = gradients.get_concrete_function(weights, side, side, seed)
    compiler = compiler_ir.from_concrete_function(traced, [*weights, side, side, seed])
    program: bytes = compiler(stage="hlo_serialized", platform_name="GPU")
    return program
