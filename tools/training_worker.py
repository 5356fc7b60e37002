"""One contender of `benchmark_training.py`, alone in its process.

    python training_worker.py {t2t_repro,products,square} WORK

WORK is a JSON object, `Work` of `training_speed/contenders.py`; `peers/turns.py` says
what goes in and comes out.
"""

import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from peers.turns import memory, turns
from training_speed.contenders import OURS, PRODUCTS, SQUARE, Work
from training_speed.products import Product, square

from t2t_repro import hparams
from t2t_repro.command_line import cli
from t2t_repro.hparams import HParams

FIRST_ID = 3  # Below lie padding, the end, and the unknown.
BATCHES = 64  # Of an epoch.
NEVER = 10**9


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the task that the command line names."""
    task, work = sys.argv[1:] if argv is None else argv
    TASKS[task](Work(**json.loads(work)))


def train(work: Work) -> None:
    """Trains as `python -m t2t_repro.train` does, without a text and checkpoints.

    Loop, pipeline, monitor and memory are the command's; an update is made whenever
    the loop gets a batch.
    """
    cli.start_tensorflow()
    from t2t_repro import fast
    from t2t_repro.batches import pipeline
    from t2t_repro.fast.memory import keep_freed_memory
    from t2t_repro.models.precision import mixed_precision
    from t2t_repro.runs.model_dir import build_model
    from t2t_repro.training import strategy as strategies
    from t2t_repro.training.loop import TrainingLoop
    from t2t_repro.training.monitor import Monitor
    from t2t_repro.training.procedure import batching_of

    before = memory("VmRSS")
    keep_freed_memory()
    fast.install()
    chosen = hparams_of(work)
    strategy = strategies.choose("auto")
    with strategy.scope(), mixed_precision(work.precision):
        model = build_model(chosen, work.vocab_size)
    with tempfile.TemporaryDirectory() as folder:
        loop = TrainingLoop(model, chosen, strategy, Path(folder), is_chief=False)
        pairs = random_pairs(work)
        config = batching_of(chosen)
        loop.run(
            lambda step: in_turn(
                pipeline.batches(pairs, config, chosen.seed, step), before
            ),
            Monitor(None, chosen.train_steps, 0, sys.stderr),
            validate=lambda step: None,
        )


def in_turn(batches: Iterable[Any], memory_before: int) -> Iterator[Any]:
    """Yields a batch whenever a step is to be made."""
    for _, batch in zip(turns(memory_before), batches, strict=False):
        yield batch


def hparams_of(work: Work) -> HParams:
    """Returns the set, its batches as large as the work wants them."""
    return hparams.load(work.size).replace(
        vocab_size=work.vocab_size,
        dropout=work.dropout,
        label_smoothing=work.label_smoothing,
        precision=work.precision,
        batching="sorted",
        max_length=work.length,
        tokens_per_batch=work.tokens,
        train_steps=NEVER,
        eval_steps=0,
    )


def random_pairs(work: Work) -> Any:
    """Draws pairs of full length, each side ending in EOS."""
    import numpy as np

    from t2t_repro.data.encoded_pairs import EncodedPairs

    count = BATCHES * work.batch_size
    shape = (count, 2, work.length)
    ids = np.random.default_rng(1).integers(FIRST_ID, work.vocab_size, shape, np.int32)
    ids[:, :, -1] = 1
    lengths = np.full((count, 2), work.length, np.int32)
    return EncodedPairs([ids.ravel()], [lengths])


def products_alone(work: Work) -> None:
    """Runs the matrix products of a step and nothing else."""
    run_products(work.products(), work.precision)


def square_alone(work: Work) -> None:
    """Runs one large product, forward and backward."""
    run_products(square(), work.precision)


def run_products(products: Sequence[Product], precision: str) -> None:
    """Multiplies what a step multiplies, in the shapes and layouts that it has.

    A product's result stands for the gradient that the backward pass would have.
    """
    cli.start_tensorflow()
    import tensorflow as tf

    from t2t_repro import fast
    from t2t_repro.fast.memory import keep_freed_memory

    before = memory("VmRSS")
    keep_freed_memory()
    fast.install()

    def matrix(copies: int, rows: int, columns: int) -> Any:
        shape = [rows, columns] if copies == 1 else [copies, rows, columns]
        # Scaled so that nothing overflows.
        drawn = tf.random.normal(shape, stddev=rows**-0.5)
        return tf.Variable(tf.cast(drawn, precision))

    operands = []
    for p in products:
        left = matrix(p.copies, p.rows, p.inner)
        operands += [
            (left, matrix(p.copies, p.inner, p.columns)) for _ in range(p.count)
        ]

    @tf.function(autograph=False)
    def step() -> Any:
        # An entry of each result, or TensorFlow would leave the product out.
        entries = []
        for left, right in operands:
            result = tf.matmul(left, right)
            by_left = tf.matmul(result, right, transpose_b=True)
            by_right = tf.matmul(left, result, transpose_a=True)
            entries += [tf.reshape(m, [-1])[0] for m in (result, by_left, by_right)]
        return tf.add_n(entries)

    for _ in turns(before):
        float(step())


TASKS: dict[str, Callable[[Work], None]] = {
    OURS: train,
    PRODUCTS: products_alone,
    SQUARE: square_alone,
}


if __name__ == "__main__":
    cli.run(main)
