"""Trains tensor2tensor's Transformer on random ids; needs tensor2tensor alone.

    tensor2tensor_training.py WORK

WORK is a JSON object, `Work` of `training_speed/contenders.py`. Model, optimizer and
session are made as `tensor2tensor_multi30k.py` makes them: transformer_base_v1 of the
work's size.
"""

from __future__ import annotations

import argparse
import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow.compat.v1 as tf
from tensor2tensor_multi30k import session, training_graph
from turns import memory, turns


class Settings(dict):
    """What `training_graph` reads of a file of batches."""

    files = ("vocab_size",)


def main() -> None:
    """Makes a step whenever it is its turn."""
    before = memory("VmRSS")
    work = json.loads(sys.argv[1])
    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.disable_eager_execution()
    arguments = argparse.Namespace(
        hparams_set="transformer_base_v1",
        hidden_size=work["d_model"],
        filter_size=work["d_ff"],
        num_heads=work["num_heads"],
        num_layers=work["num_layers"],
        warmup_steps=4000,
        threads=0,
    )
    settings = Settings(vocab_size=work["vocab_size"])
    inputs, targets, train_op = training_graph(arguments, settings)
    shape = (work["batch_size"], work["length"], 1, 1)
    draw = np.random.default_rng(1).integers
    feed = {
        side: draw(2, work["vocab_size"], shape, dtype=np.int32)
        for side in (inputs, targets)
    }
    with session(arguments) as run:
        run.run(tf.global_variables_initializer())
        for _ in turns(before):
            float(run.run(train_op, feed))


if __name__ == "__main__":
    main()
