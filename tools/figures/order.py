"""Figure of the effect of word order on the encoder, for several position signals."""

from typing import Any

import numpy as np

from figures import style

VOCAB_SIZE = 1000
LENGTH = 20
KINDS: dict[str, dict[str, Any]] = {
    **{kind: {"position": kind} for kind in ("none", "sinusoid", "learned")},
    "relative": {"position": "none", "max_relative_position": 8},
}


def order_effect(settings: dict[str, Any], shuffles: int = 10, seed: int = 1) -> float:
    """Measures how much the outputs of a random encoder depend on word order.

    The encoder's outputs for a shuffled sentence of random words are put back into the
    original order and compared with those of the original sentence.

    Args:
        settings: Hyper-parameters of the position signal.
        shuffles: Number of permutations.
        seed: Random seed of weights, words and permutations.

    Returns:
        Root mean square of the difference, divided by the standard deviation of the
        outputs; 0 if the order does not matter.
    """
    import tensorflow as tf

    from t2t_repro.hparams import HParams
    from t2t_repro.runs.model_dir import build_model

    sizes = {"d_model": 64, "d_ff": 256, "num_heads": 4, "num_layers": 2, "seed": seed}
    model = build_model(HParams(**(sizes | settings)), VOCAB_SIZE)
    generator = np.random.default_rng(seed)
    words = generator.integers(2, VOCAB_SIZE, (1, LENGTH), np.int32)
    original = model.encode(tf.constant(words))[0][0].numpy()
    orders = [generator.permutation(LENGTH) for _ in range(shuffles)]
    # A batch of shuffled sentences.
    shuffled = model.encode(tf.constant(words[0, orders]))[0].numpy()
    return float(np.sqrt(((shuffled - original[orders]) ** 2).mean()) / original.std())


def draw() -> style.Drawn:
    """Draws the figure; returns it and the numbers in it."""
    effects = {kind: order_effect(settings) for kind, settings in KINDS.items()}
    figure, (axes,) = style.panels(1, width=5)
    floor = 1e-8
    heights = {kind: max(value, floor) for kind, value in effects.items()}
    style.draw_bars(axes, heights, [f"{value:.1e}" for value in effects.values()])
    axes.set(title="Change of the encoder's outputs when words are shuffled")
    axes.set(xlabel="position signal", ylabel="difference / spread of outputs")
    axes.set(yscale="log", ylim=(floor, 30))
    return figure, effects
