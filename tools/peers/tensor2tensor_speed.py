"""Trains tensor2tensor's Transformer, or translates with it, whenever it is its turn.

    tensor2tensor_speed.py WORK

The script stands alone: it needs Python 3.7 with tensorflow 1.15.5 and tensor2tensor
1.15.7, and its syntax keeps to that version. WORK is a JSON object with the sizes
`d_model`, `d_ff`, `num_heads`, `num_layers` and `vocab_size`, and

* `weights` and `sentences` to translate: files of arrays; the first holds float32 by
  tensor2tensor's variable names, the second `inputs` int32 (sentences, length), PAD 0,
  each row ending in EOS. Also `batch_size`, `beam_size`, `alpha`, `extra_length`. A
  request is how many batches; the answer has their `ids` and `scores`.
* else, to train: `batches`, a file with `inputs_flat` and `targets_flat` int32 (ids,),
  the batches one after another in row order, and `inputs_shape` and `targets_shape`
  (batches, 2), rows and length, and `warmup_steps`; or `batch_size` and `length` of
  random full sentences. A request is how many steps; the answer has their `losses`
  (nats per target token, less the soft target's entropy) and `target_tokens`.

Model, optimizer, session and beam search are tensor2tensor's own.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Iterator
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow.compat.v1 as tf
from tensor2tensor.data_generators import problem_hparams
from tensor2tensor.models import transformer
from tensor2tensor.utils import learning_rate, optimize, registry, trainer_lib
from turns import memory, turns

SIDES = ("inputs", "targets")
TARGET_SPACE = 0  # The row of the target-space table that t2t_repro has.


def main() -> None:
    """Does what the command line says."""
    before = memory("VmRSS")
    work = json.loads(sys.argv[1])
    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.disable_eager_execution()
    (translate if "weights" in work else train)(work, before)


def build_model(work: dict[str, Any], mode: str, hparams: Any) -> Any:
    """Returns tensor2tensor's Transformer for one shared vocabulary."""
    hparams.hidden_size, hparams.filter_size = work["d_model"], work["d_ff"]
    hparams.num_heads = work["num_heads"]
    hparams.num_hidden_layers = work["num_layers"]
    size = work["vocab_size"]
    problem = problem_hparams.test_problem_hparams(size, size, hparams)
    hparams.problem_hparams, hparams.problem = problem, None
    return transformer.Transformer(hparams, mode, problem)


def ids_placeholder() -> tf.Tensor:
    """Returns an int32 placeholder (batch, length, 1, 1), tensor2tensor's layout."""
    return tf.placeholder(tf.int32, [None, None, 1, 1])


def session() -> tf.Session:
    """Returns a session set up as tensor2tensor's own trainer does."""
    return tf.Session(config=trainer_lib.create_session_config())


def train(work: dict[str, Any], before: int) -> None:
    """Makes as many steps as each request says."""
    hparams = registry.hparams("transformer_base_v1")
    hparams.learning_rate_warmup_steps = work.get("warmup_steps", 4000)
    model = build_model(work, tf.estimator.ModeKeys.TRAIN, hparams)
    sides = {side: ids_placeholder() for side in SIDES}
    space = {"target_space_id": tf.constant(TARGET_SPACE)}
    _, losses = model({**sides, **space})
    rate = learning_rate.learning_rate_schedule(hparams)
    step = optimize.optimize(tf.add_n(list(losses.values())), rate, hparams)
    source = batches_of(np.load(work["batches"])) if "batches" in work else full(work)
    with session() as run:
        run.run(tf.global_variables_initializer())
        for count, answer in turns(before):
            answer["losses"], answer["target_tokens"] = [], 0
            for batch in itertools.islice(source, count):
                feed = {sides[side]: batch[side][:, :, None, None] for side in SIDES}
                answer["losses"].append(float(run.run(step, feed)))
                answer["target_tokens"] += int(np.count_nonzero(batch["targets"]))


def full(work: dict[str, Any]) -> Iterator[dict[str, np.ndarray]]:
    """Yields the same batch of random full sentences for ever."""
    shape = (work["batch_size"], work["length"])
    draw = np.random.default_rng(1).integers
    batch = {side: draw(2, work["vocab_size"], shape, np.int32) for side in SIDES}
    return itertools.repeat(batch)


def batches_of(arrays: Any) -> Iterator[dict[str, np.ndarray]]:
    """Yields the batches of a file: each side's ids, int32 (rows, length)."""
    shapes = {side: arrays[side + "_shape"] for side in SIDES}
    flat = {
        side: np.split(arrays[side + "_flat"], np.cumsum(shapes[side].prod(axis=1)))
        for side in SIDES
    }
    for at in range(len(shapes["inputs"])):
        yield {side: flat[side][at].reshape(shapes[side][at]) for side in SIDES}


def translate(work: dict[str, Any], before: int) -> None:
    """Translates as many batches as each request says, from the first on."""
    batches = cut_batches(np.load(work["sentences"])["inputs"], work["batch_size"])
    hparams = registry.hparams("transformer_base_v1")
    weights = dict(np.load(work["weights"]))
    hparams.use_target_space_embedding = any("target_space" in name for name in weights)
    model = build_model(work, tf.estimator.ModeKeys.PREDICT, hparams)
    inputs = ids_placeholder()
    found = model.infer(
        {"inputs": inputs, "target_space_id": tf.constant(TARGET_SPACE)},
        decode_length=work["extra_length"],
        beam_size=work["beam_size"],
        top_beams=1,
        alpha=work["alpha"],
    )
    outputs = [found["outputs"], found["scores"]]
    variables = {variable.op.name: variable for variable in tf.trainable_variables()}
    different = sorted(set(variables) ^ set(weights))
    if different:
        raise SystemExit(f"transformer_base_v1 and weights differ: {different[:4]}")
    with session() as run:
        for name, variable in variables.items():
            variable.load(weights[name], run)
        for count, answer in turns(before):
            answer["ids"], answer["scores"] = [], []
            for batch in batches[:count]:
                ids, scores = run.run(outputs, {inputs: batch[:, :, None, None]})
                answer["ids"] += ids.tolist()
                answer["scores"] += scores.tolist()


def cut_batches(inputs: np.ndarray, size: int) -> list[np.ndarray]:
    """Returns sentences in batches, each as long as its longest.

    Args:
      inputs: int32 (sentences, length), 0-padded, longest first.
      size: sentences per batch.
    """
    parts = [inputs[start : start + size] for start in range(0, len(inputs), size)]
    return [part[:, : np.count_nonzero(part[0])] for part in parts]


if __name__ == "__main__":
    main()
