"""Trains tensor2tensor's Transformer on random ids, independently of t2t_repro.

    tensor2tensor_speed.py WORK

WORK is a JSON object, `Work` of `benchmarks/work.py`. The script requires Python 3.7
with tensorflow 1.15.5 and tensor2tensor 1.15.7, so its syntax must be valid in Python
3.7. Model, loss, optimizer and session are tensor2tensor's.
"""

import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow.compat.v1 as tf
from tensor2tensor.data_generators import problem_hparams
from tensor2tensor.models import transformer
from tensor2tensor.utils import learning_rate, optimize, registry, trainer_lib
from turns import memory, steps

SIDES = ("inputs", "targets")


def build_model(work, hparams):
    """Returns tensor2tensor's Transformer with a shared vocabulary."""
    hparams.hidden_size, hparams.filter_size = work["d_model"], work["d_ff"]
    hparams.num_heads = work["num_heads"]
    hparams.num_hidden_layers = work["num_layers"]
    size = work["vocab_size"]
    problem = problem_hparams.test_problem_hparams(size, size, hparams)
    hparams.problem_hparams, hparams.problem = problem, None
    return transformer.Transformer(hparams, tf.estimator.ModeKeys.TRAIN, problem)


def main():
    """Runs the requested training steps."""
    before = memory("VmRSS")
    work = json.loads(sys.argv[1])
    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.disable_eager_execution()
    hparams = registry.hparams("transformer_base_v1")
    model = build_model(work, hparams)
    # tensor2tensor's layout: (batch, length, 1, 1).
    sides = {side: tf.placeholder(tf.int32, [None, None, 1, 1]) for side in SIDES}
    _, losses = model(dict(sides, target_space_id=tf.constant(0)))
    rate = learning_rate.learning_rate_schedule(hparams)
    step = optimize.optimize(tf.add_n(list(losses.values())), rate, hparams)
    shape, size = (work["batch_size"], work["length"], 1, 1), work["vocab_size"]
    draw = np.random.default_rng(1).integers
    feed = {each: draw(2, size, shape, np.int32) for each in sides.values()}
    with tf.Session(config=trainer_lib.create_session_config()) as session:
        session.run(tf.global_variables_initializer())
        for _ in steps(before):
            session.run(step, feed)


if __name__ == "__main__":
    main()
