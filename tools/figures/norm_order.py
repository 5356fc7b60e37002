"""Figure of the training loss of post-norm and pre-norm, with and without warm-up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from figures import style

if TYPE_CHECKING:
    from t2t_repro.data.prepared_data import PreparedData
    from t2t_repro.hparams import HParams

WARMUP = 200
SMOOTHED = 10
HPARAMS = (
    "tiny,num_layers=6,d_model=64,d_ff=256,num_heads=4,tokens_per_batch=1024,"
    f"max_tokens_per_device=0,warmup_steps={WARMUP}"
)


def runs(seed: int) -> dict[str, HParams]:
    """Returns the hyper-parameters of the four runs by name.

    Without warm-up, the learning rate is (d_model * warm-up)^-0.5 up to the end of the
    warm-up, and then decreases in the same way.
    """
    from t2t_repro import hparams as sets

    warmup = sets.load(HPARAMS).replace(seed=seed)
    scale, decay = warmup.d_model**-0.5, "rsqrt_decay"
    none = warmup.replace(learning_rate_schedule=decay, learning_rate_scale=scale)
    return {
        f"{norm}-norm, {name}": hparams.replace(norm=norm)
        for norm in ("post", "pre")
        for name, hparams in (("warm-up", warmup), ("none", none))
    }


def losses(hparams: HParams, data: PreparedData, steps: int) -> npt.NDArray[np.float64]:
    """Trains a model and returns the loss of each step.

    The loss is in nats per token, with label smoothing.
    """
    import tensorflow as tf

    from t2t_repro.batches import packed_batch, pipeline
    from t2t_repro.runs.model_dir import build_model
    from t2t_repro.training.procedure import make_batching_config
    from t2t_repro.training.step import TrainStep

    model = build_model(hparams, data.tokenizer.vocab_size)
    step = TrainStep(model, hparams, accumulate=False)
    update = tf.function(
        step.replica_step,
        input_signature=[packed_batch.SIGNATURE, tf.TensorSpec([], tf.int32)],
        autograph=False,
    )
    batches = pipeline.batches(data.train, make_batching_config(hparams), hparams.seed)
    values = [
        float(update(batch, tf.constant(number))[0])
        for number, batch in enumerate(batches.take(steps))
    ]
    return np.array(values)


def smooth(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Returns the moving average over `SMOOTHED` values."""
    return np.convolve(values, np.full(SMOOTHED, 1 / SMOOTHED), "valid")


def draw(
    data_dir: Path, steps: int, seed: int, log: Callable[[str], None]
) -> style.Drawn:
    """Trains the four models and draws the figure.

    Args:
        data_dir: Folder for the prepared built-in corpus.
        steps: Number of steps of each run.
        seed: Random seed of weights, batches and dropout.
        log: Function that prints a line of progress.
    """
    from t2t_repro.data.prepared_data import prepare
    from t2t_repro.problems import create

    hparams_by_name = runs(seed)
    first = next(iter(hparams_by_name.values()))
    data = prepare(create("translate_ende_numbers"), first, data_dir, log)
    figure, (axes,) = style.panels(1, width=5.5, height=3.4)
    facts = {}
    for number, (name, hparams) in enumerate(hparams_by_name.items()):
        curve = smooth(losses(hparams, data, steps))
        facts[name] = {"first": float(curve[0]), "last": float(curve[-1])}
        log(f"{name}: loss {curve[0]:.3f} at the start, {curve[-1]:.3f} at the end")
        at = np.arange(len(curve)) + SMOOTHED
        axes.plot(at, curve, label=name, **style.line(number))
    axes.axvline(WARMUP, color=style.INK, linewidth=0.8)
    layers = f"{first.num_layers} + {first.num_layers} layers"
    title = f"{layers}, d_model = {first.d_model}: loss of the training batches"
    axes.set(title=title, ylabel="loss (nats per token)", ylim=(0, None))
    axes.set(xlabel=f"step (warm-up ends at {WARMUP})")
    axes.legend()
    return figure, facts
