"""Benchmark task: training steps of t2t_repro."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.peers.turns import memory, turns
from benchmarks.work import Work
from t2t_repro import hparams as hparam_sets
from t2t_repro.batches import pipeline
from t2t_repro.data.encoded_pairs import EncodedPairs
from t2t_repro.models.precision import mixed_precision
from t2t_repro.runs.model_dir import build_model
from t2t_repro.system.errors import UserError
from t2t_repro.system.malloc import keep_freed_memory
from t2t_repro.training import strategy as strategies
from t2t_repro.training.loop import TrainingLoop
from t2t_repro.training.monitor import Monitor
from t2t_repro.training.procedure import make_batching_config
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
    config, pairs = make_batching_config(hparams), random_pairs(work)
    with strategy.scope(), mixed_precision(hparams.precision):
        model = build_model(hparams, work.vocab_size)
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

    def record_step(self, step: int, result: StepResult | None) -> None:
        """Adds a step's tokens; raises UserError if the step was skipped."""
        super().record_step(step, result)
        if result is None:
            raise UserError(f"step {step} was skipped: its loss is not finite")
        self._tokens += round(result.tokens)

    def take(self) -> int:
        """Returns the number of tokens since the last call."""
        tokens, self._tokens = self._tokens, 0
        return tokens
