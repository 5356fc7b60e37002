"""Figure of the effect of dividing attention scores by sqrt(d_k)."""

from typing import Any

import numpy as np
import numpy.typing as npt

from figures import style

Array = npt.NDArray[np.floating[Any]]

SIZES = (4, 8, 16, 32, 64, 128, 256, 512)
KEYS = 64
SAMPLES = 128
NAMES = {
    "additive": "additive: v · tanh(W q + U k)",
    "unscaled": "dot product: q · k",
    "scaled": "scaled: q · k / √d_k",
}


def scores(kind: str, d_k: int, seed: int = 1) -> Array:
    """Draws attention scores of random queries and keys.

    The components of queries and keys are independent with mean 0 and variance 1 (paper
    section 3.2.1, footnote 4). Additive attention (Bahdanau et al. 2014) has d_k hidden
    units and random W, U and v with variance 1 / fan-in.

    Args:
        kind: Key of `NAMES`.
        d_k: Number of channels of queries and keys.
        seed: Random seed.

    Returns:
        float64 (SAMPLES, KEYS).
    """
    draw = np.random.default_rng(seed).normal
    query, key = draw(size=(SAMPLES, 1, d_k)), draw(size=(SAMPLES, KEYS, d_k))
    if kind == "additive":
        w, u = draw(size=(2, d_k, d_k)) / np.sqrt(2 * d_k)
        hidden = np.tanh(query @ w + key @ u)
        return hidden @ (draw(size=d_k) / np.sqrt(d_k))
    products = (query * key).sum(axis=-1)
    return products / np.sqrt(d_k) if kind == "scaled" else products


def weights(logits: Array) -> Array:
    """Returns the softmax of each row."""
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def gradient_size(logits: Array) -> float:
    """Returns the mean Frobenius norm of softmax's Jacobian, diag(p) - p p^T.

    `logits` are float (samples, keys).
    """
    p = weights(logits)
    squares = (p**2).sum(axis=-1)
    # |diag(p) - p p^T|^2 = sum p^2 - 2 sum p^3 + (sum p^2)^2
    norm = squares - 2 * (p**3).sum(axis=-1) + squares**2
    return float(np.sqrt(np.maximum(norm, 0)).mean())


def draw() -> style.Drawn:
    """Draws the figure; returns it and the numbers in it."""
    figure, (spread, largest, gradient) = style.panels(3)
    facts: dict[str, Any] = {}
    for number, (kind, name) in enumerate(NAMES.items()):
        logits = [scores(kind, size) for size in SIZES]
        facts[kind] = {}
        for axes, fact, measure in (
            (spread, "spread", lambda x: x.std(axis=-1).mean()),
            (largest, "largest_weight", lambda x: weights(x).max(axis=-1).mean()),
            (gradient, "gradient", gradient_size),
        ):
            values = [float(measure(each)) for each in logits]
            axes.plot(SIZES, values, label=name, **style.marked_line(number))
            facts[kind][f"{fact}_at_512"] = values[SIZES.index(512)]
    for axes in (spread, largest, gradient):
        axes.set(xlabel="d_k (channels)", xscale="log")
        axes.set_xticks([4, 16, 64, 256], ["4", "16", "64", "256"])
        axes.minorticks_off()
    spread.set(title="Spread of the scores over the keys", yscale="log")
    spread.set(ylabel="standard deviation")
    spread.legend()
    largest.set(title=f"Largest of {KEYS} weights after softmax", ylim=(0, 1))
    largest.set(ylabel="mean largest weight")
    gradient.set(title="Gradient through softmax", ylim=(0, None))
    gradient.set(ylabel="mean norm of the Jacobian")
    return figure, facts
