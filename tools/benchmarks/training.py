"""Benchmark tasks: training steps of t2t_repro, matmuls, and memory copies."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.package import keep_freed_memory, random_model
from benchmarks.peers.turns import memory, steps, turns
from benchmarks.work import SQUARE, Matmul, Work, matmuls_of
from t2t_repro import hparams as hparam_sets
from t2t_repro.batches import pipeline
from t2t_repro.data.encoded_pairs import EncodedPairs
from t2t_repro.models.precision import mixed_precision
from t2t_repro.system.errors import UserError
from t2t_repro.training import strategy as strategies
from t2t_repro.training.loop import TrainingLoop
from t2t_repro.training.monitor import Monitor
from t2t_repro.training.procedure import batching_of
from t2t_repro.training.step import StepResult

FIRST_ID = 3  # After PAD, EOS and the unknown token.
BATCHES = 64  # Batches per epoch of random pairs.
NEVER = 10**9
SAME = ("vocab_size", "dropout", "label_smoothing", "precision", "xla")
"""Hyper-parameters that are fields of `Work`."""


def train(settings: Mapping[str, Any]) -> None:
    """Trains on random pairs as `python -m t2t_repro.train` does.

    Uses the command's loop, input pipeline, monitor and allocator settings, without
    validation or checkpoints. A request is a number of steps; the answer has their
    `target_tokens` and the peak `gpu_memory` in bytes. `settings` are the fields of a
    `Work`.
    """
    before = memory("VmRSS")
    keep_freed_memory()
    work = Work(**settings)
    hparams = hparam_sets.load(work.size).replace(
        **{name: getattr(work, name) for name in SAME},
        batching="packed" if work.packed_length else "sorted",
        packed_length=work.packed_length or work.length,
        max_length=work.length,
        tokens_per_batch=work.positions,
        max_tokens_per_device=0,
        train_steps=NEVER,
        eval_steps=0,
    )
    strategy = strategies.choose("auto", xla=work.xla)
    config, pairs = batching_of(hparams), random_pairs(work)
    with strategy.scope(), mixed_precision(hparams.precision):
        model = random_model(hparams, work.vocab_size)
    counter = TokenCounter()

    def batches(step: int) -> Iterator[Any]:
        source = iter(pipeline.batches(pairs, config, hparams.seed, step))
        for count, answer in turns(before):
            yield from islice(source, count)
            loop.read_result()
            answer["target_tokens"] = counter.take()
            if tf.config.list_physical_devices("GPU"):
                usage = tf.config.experimental.get_memory_info("GPU:0")
                answer["gpu_memory"] = usage["peak"]

    with tempfile.TemporaryDirectory() as folder:
        loop = TrainingLoop(model, hparams, strategy, Path(folder), is_chief=False)
        loop.run(batches, counter, validate=lambda step: None)  # type: ignore[arg-type]


def random_pairs(work: Work) -> EncodedPairs:
    """Draws pairs of maximum length with EOS at the end of both sides."""
    count = BATCHES * work.batch_size
    shape = (count, 2, work.length)
    ids = np.random.default_rng(1).integers(FIRST_ID, work.vocab_size, shape, np.int32)
    ids[:, :, -1] = 1
    lengths = np.full((count, 2), work.length, np.int32)
    return EncodedPairs([ids.ravel()], [lengths])


class TokenCounter(Monitor):
    """Monitor that counts the target tokens of the steps and writes no files."""

    def __init__(self) -> None:
        super().__init__(None, NEVER, 0, sys.stderr)
        self._tokens = 0

    def step_done(self, step: int, result: StepResult | None) -> None:
        """Adds a step's tokens; raises UserError if the step was skipped."""
        super().step_done(step, result)
        if result is None:
            raise UserError(f"step {step} was skipped: its loss is not finite")
        self._tokens += round(result.tokens)

    def take(self) -> int:
        """Returns the number of tokens since the last call."""
        tokens, self._tokens = self._tokens, 0
        return tokens


def products(settings: Mapping[str, Any]) -> None:
    """Runs only the matmuls of a training step."""
    work = Work(**settings)
    multiply_in_turn(matmuls_of(work), work.precision)


def square(settings: Mapping[str, Any]) -> None:
    """Runs one large matmul, or those in `matmuls`, forward and backward."""
    fields = settings.get("matmuls")
    matmuls = [Matmul(**each) for each in fields] if fields else SQUARE
    multiply_in_turn(matmuls, settings["precision"])


def copy(settings: Mapping[str, Any]) -> None:
    """Reads and writes a float32 tensor of `bytes` bytes."""
    values = tf.Variable(tf.zeros([settings["bytes"] // 4]))

    @tf.function(autograph=False)
    def step() -> Any:
        return values.assign(-values)[0]

    for _ in steps(memory("VmRSS")):
        float(step())


def multiply_in_turn(matmuls: Sequence[Matmul], precision: str) -> None:
    """Runs the matmuls of a step with its shapes and layouts, forward and backward.

    Each forward result serves as the gradient of its backward matmuls.
    """
    before = memory("VmRSS")
    keep_freed_memory()

    def matrix(copies: int, rows: int, columns: int) -> Any:
        shape = [rows, columns] if copies == 1 else [copies, rows, columns]
        # The scale prevents overflow.
        values = tf.random.normal(shape, stddev=rows**-0.5)
        return tf.Variable(tf.cast(values, precision))

    operands = []
    for m in matmuls:
        left = matrix(m.copies, m.rows, m.inner)
        operands += [
            (left, matrix(m.copies, m.inner, m.columns)) for _ in range(m.count)
        ]

    @tf.function(autograph=False)
    def step() -> Any:
        # TensorFlow prunes matmuls whose results are unused.
        entries = []
        for left, right in operands:
            result = tf.matmul(left, right)
            by_left = tf.matmul(result, right, transpose_b=True)
            by_right = tf.matmul(left, result, transpose_a=True)
            entries += [tf.reshape(x, [-1])[0] for x in (result, by_left, by_right)]
        return tf.add_n(entries)

    for _ in steps(before):
        float(step())
