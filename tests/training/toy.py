"""Small model and synthetic batches for tests of training."""

import io
import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from t2t_repro.batches import packed_batch
from t2t_repro.batches.packed_batch import PackedBatch
from t2t_repro.hparams import HParams
from t2t_repro.models.transformer import Transformer
from t2t_repro.runs import checkpoints
from t2t_repro.runs.model_dir import build_model
from t2t_repro.training.loop import TrainingLoop
from t2t_repro.training.monitor import Monitor
from t2t_repro.training.step import StepResult

VOCAB_SIZE = 30
HPARAMS = HParams(
    vocab_size=VOCAB_SIZE,
    d_model=16,
    d_ff=24,
    num_heads=2,
    num_layers=1,
    dropout=0.2,
    attention_dropout=0.1,
    ffn_dropout=0.1,
    warmup_steps=10,
    max_length=8,
    tokens_per_batch=64,
    max_tokens_per_device=0,
    train_steps=6,
    checkpoint_minutes=60.0,
    eval_steps=0,
)


def model(hparams: HParams = HPARAMS, vocab_size: int = VOCAB_SIZE) -> Transformer:
    return build_model(hparams, vocab_size)


def side(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Returns sentences of 2 to 8 tokens including EOS, int32 (rows, 8)."""
    ids = rng.integers(2, VOCAB_SIZE, [rows, 8])
    last = rng.integers(1, 8, [rows, 1])
    column = np.arange(8)
    ids = np.where(column == last, 1, np.where(column < last, ids, 0))
    return ids.astype(np.int32)


def rectangle(step: int, rows: int = 5) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(step)
    return {"inputs": side(rng, rows), "targets": side(rng, rows)}


def pack(*rectangles: dict[str, np.ndarray]) -> PackedBatch:
    """Packs micro-batches with their ratio of tokens to positions."""
    ids = np.concatenate([np.ravel(side) for r in rectangles for side in r.values()])
    return packed_batch.pack(*rectangles, token_ratio=np.count_nonzero(ids) / ids.size)


def batch(step: int, microbatches: int = 1) -> PackedBatch:
    """Returns a batch of five rows.

    Several micro-batches have only the columns that they need; a single one has eight.
    """
    whole = rectangle(step)
    if microbatches == 1:
        return pack(whole)
    rows = np.array_split(np.arange(5), microbatches)
    return pack(
        *({name: trim(ids[some]) for name, ids in whole.items()} for some in rows)
    )


def trim(ids: np.ndarray) -> np.ndarray:
    """Returns ids without the columns that are padding in every row."""
    return ids[:, ids.any(axis=0)]


def batches(step: int, microbatches: int = 1) -> Iterator[PackedBatch]:
    while True:
        yield batch(step, microbatches)
        step += 1


def batches_of_microbatches(step: int) -> Iterator[PackedBatch]:
    """Yields batches of three micro-batches."""
    return batches(step, microbatches=3)


def loop(directory: Path, hparams: HParams = HPARAMS, **options: Any) -> TrainingLoop:
    strategy = tf.distribute.get_strategy()
    return TrainingLoop(model(hparams), hparams, strategy, directory, **options)


def monitor() -> Monitor:
    return Monitor(None, HPARAMS.train_steps, 0, io.StringIO())


def never(step: int) -> None:
    """Validation function that does nothing."""


def dumping_to(folder: Path) -> dict[str, str]:
    """Returns the variable that makes XLA write each program that it compiles."""
    return {"XLA_FLAGS": f"{os.environ['XLA_FLAGS']} --xla_dump_to='{folder}'"}


def compiled(folder: Path) -> int:
    """Returns the number of programs that XLA has compiled and written to a folder."""
    return len(list(folder.glob("*.before_optimizations.txt")))


def fake_loop(directory: Path, **changes: Any) -> TrainingLoop:
    """Returns a loop whose steps compute nothing and report a constant result."""
    made = loop(directory, HPARAMS.replace(**changes))
    result = StepResult(
        loss=1.0, tokens=9.0, token_ratio=0.9, gradient_norm=1.0, rate=0.1
    )
    made.update = lambda *_: list(vars(result).values())
    return made


def steps_saved(directory: Path) -> list[int]:
    """Returns the steps of the checkpoints in a folder."""
    return [each.step for each in checkpoints.list_checkpoints(directory)]


def batches_with_signals(at: int, *signals: int) -> Iterator[PackedBatch]:
    """Yields batches; sends signals to this process before batch number `at`."""
    for step in count():
        if step == at:
            for number in signals:
                os.kill(os.getpid(), number)
        yield batch(step)
