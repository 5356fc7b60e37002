"""Figure of the effect of padding and other sentences on normalized vectors."""

from typing import Any

import numpy as np

from figures import style

D_MODEL = 64
WORDS = 8
ROWS = 16
FRACTIONS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def padded_batch(fraction: float, seed: int = 1, others_seed: int = 1) -> Any:
    """Returns a batch of random vectors, float32 (ROWS, length, D_MODEL).

    Args:
        fraction: Fraction of padding (zero vectors), below 1; a sentence has `WORDS`
            words.
        seed: Random seed of the first sentence.
        others_seed: Random seed of the other sentences.
    """
    length = round(WORDS / (1 - fraction))
    # Channels differ in mean and variance, as in a model.
    centre = np.random.default_rng(0).normal(size=D_MODEL)
    width = np.random.default_rng(9).uniform(0.5, 2, D_MODEL)
    batch = np.zeros((ROWS, length, D_MODEL), np.float32)
    for row in range(ROWS):
        key = [seed] if row == 0 else [others_seed, row]
        words = np.random.default_rng(key).normal(size=(WORDS, D_MODEL))
        batch[row, :WORDS] = centre + width * words
    return batch


def normalize(kind: str, batch: Any) -> Any:
    """Normalizes a batch and returns the vectors of its first sentence.

    Args:
        kind: "layer", "batch" (including padding) or "batch, masked" (excluding it).
        batch: float32 (ROWS, length, D_MODEL).

    Returns:
        float32 (WORDS, D_MODEL).
    """
    import keras

    from t2t_repro.layers.add_and_norm import LayerNormalization

    if kind == "layer":
        layer = LayerNormalization()
        layer.build(batch.shape)
        return np.asarray(layer(batch[0]))[:WORDS]
    layer = keras.layers.BatchNormalization(epsilon=1e-6)
    last = WORDS if kind == "batch, masked" else batch.shape[1]
    mask = np.broadcast_to(np.arange(batch.shape[1]) < last, batch.shape[:2])
    return np.asarray(layer(batch, training=True, mask=mask))[0, :WORDS]


def change(kind: str, batch: Any, other: Any) -> float:
    """Returns the change of the first sentence between two batches (RMS)."""
    difference = normalize(kind, batch) - normalize(kind, other)
    return float(np.sqrt((difference**2).mean()))


def draw() -> style.Drawn:
    """Draws the figure; returns it and the numbers in it."""
    kinds = {
        "batch": "batch norm, padding included",
        "batch, masked": "batch norm, padding masked",
        "layer": "layer norm",
    }
    figure, (padding, companions) = style.panels(2, width=4.2)
    facts: dict[str, Any] = {}
    plain = padded_batch(0)
    padded = [padded_batch(fraction) for fraction in FRACTIONS]
    others = [padded_batch(0, others_seed=seed) for seed in (2, 3, 4)]
    percent = [100 * fraction for fraction in FRACTIONS]
    bars = {}
    for number, (kind, name) in enumerate(kinds.items()):
        changes = [change(kind, plain, batch) for batch in padded]
        padding.plot(percent, changes, label=name, **style.marked_line(number))
        moved = float(np.mean([change(kind, plain, batch) for batch in others]))
        bars[name.replace(", ", ",\n")] = moved
        facts[kind] = {"moved_by_90_percent_padding": changes[-1]}
        facts[kind]["moved_by_other_neighbours"] = moved
    padding.set(title="The same sentence with more padding", ylim=(-0.05, None))
    padding.set(xlabel="padding in the batch (%)", ylabel="change of its vectors (RMS)")
    padding.legend()
    style.draw_bars(companions, bars, [f"{value:.3f}" for value in bars.values()])
    companions.set(title="The same sentence among other sentences")
    companions.set(ylabel="change of its vectors (RMS)")
    companions.margins(y=0.15)
    return figure, facts
