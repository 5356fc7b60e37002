"""Without positions the encoder does not know the order of words."""

from typing import Any

import numpy as np

from figures import style

VOCAB_SIZE = 1000
LENGTH = 20
KINDS: dict[str, dict[str, Any]] = {
    "none": {"position": "none"},
    "sinusoid": {"position": "sinusoid"},
    "learned": {"position": "learned"},
    "relative": {"position": "none", "max_relative_position": 8},
}


def order_effect(settings: dict[str, Any], shuffles: int = 10, seed: int = 1) -> float:
    """Measures how much an encoder of random weights notices that words changed places.

    A sentence of random words is shuffled; the outputs are put back into the old order
    and compared with those of the sentence itself. Returns the root mean square of the
    difference over the spread of the outputs; 0 where order does not matter.
    """
    import tensorflow as tf

    from t2t_repro.hparams import HParams
    from t2t_repro.runs.model_dir import build_model

    sizes = {"d_model": 64, "d_ff": 256, "num_heads": 4, "num_layers": 2, "seed": seed}
    model = build_model(HParams(**(sizes | settings)), VOCAB_SIZE)
    generator = np.random.default_rng(seed)
    words = generator.integers(2, VOCAB_SIZE, (1, LENGTH), np.int32)
    straight = model.encode(tf.constant(words))[0][0].numpy()
    squares = []
    for _ in range(shuffles):
        order = generator.permutation(LENGTH)
        shuffled = model.encode(tf.constant(words[:, order]))[0][0].numpy()
        squares.append(((shuffled - straight[order]) ** 2).mean())
    return float(np.sqrt(np.mean(squares)) / straight.std())


def draw() -> style.Drawn:
    """Draws the figure; returns it and its numbers."""
    found = {kind: order_effect(settings) for kind, settings in KINDS.items()}
    figure, (axes,) = style.panels(1, width=5)
    floor = 1e-8
    bars = axes.bar(
        list(found), [max(value, floor) for value in found.values()], color="none"
    )
    for number, bar in enumerate(bars):
        bar.set(facecolor=style.COLOURS[number], width=0.6)
    axes.bar_label(bars, [f"{value:.1e}" for value in found.values()], color=style.INK)
    axes.set(
        title="Shuffle the words, put the encoder's outputs back: what differs",
        xlabel="position signal",
        ylabel="difference / spread of outputs",
        yscale="log",
        ylim=(floor, 30),
    )
    axes.grid(visible=False, axis="x")
    return figure, found
