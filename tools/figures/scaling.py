"""Why scores are divided by sqrt(d_k): what softmax gets, and what it gives back."""

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
    """Draws scores of random queries and keys of d_k channels, float64 (SAMPLES, KEYS).

    The components of queries and keys are independent with mean 0 and variance 1 (paper
    section 3.2.1, footnote 4); of the additive form (Bahdanau et al. 2014; d_k hidden
    units) so are W, U and v, over the root of their inputs. `kind` is a key of `NAMES`.
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
    """Returns how much of a gradient softmax lets through, from float (samples, keys).

    That is the mean Frobenius norm of softmax's Jacobian, diag(p) - p p^T.
    """
    p = weights(logits)
    squares = (p**2).sum(axis=-1)
    # |diag(p) - p p^T|^2 = sum p^2 - 2 sum p^3 + (sum p^2)^2
    norm = squares - 2 * (p**3).sum(axis=-1) + squares**2
    return float(np.sqrt(np.maximum(norm, 0)).mean())


def draw() -> style.Drawn:
    """Draws the figure; returns it and its numbers."""
    figure, (spread, largest, gradient) = style.panels(3)
    facts: dict[str, Any] = {}
    for number, (kind, name) in enumerate(NAMES.items()):
        drawn = [scores(kind, size) for size in SIZES]
        std = [float(each.std(axis=-1).mean()) for each in drawn]
        peak = [float(weights(each).max(axis=-1).mean()) for each in drawn]
        let_through = [gradient_size(each) for each in drawn]
        look = style.line(number) | {"marker": "os^"[number], "markersize": 4}
        for axes, values in ((spread, std), (largest, peak), (gradient, let_through)):
            axes.plot(SIZES, values, label=name, **look)
        facts[kind] = {
            "spread_at_512": std[SIZES.index(512)],
            "largest_weight_at_512": peak[SIZES.index(512)],
            "gradient_at_512": let_through[SIZES.index(512)],
        }
    for axes in (spread, largest, gradient):
        axes.set(xlabel="d_k (channels)", xscale="log")
        axes.set_xticks([4, 16, 64, 256], ["4", "16", "64", "256"])
        axes.minorticks_off()
    spread.set(
        title="Spread of the scores over the keys",
        ylabel="standard deviation",
        yscale="log",
    )
    spread.legend()
    largest.set(
        title=f"Largest of {KEYS} weights after softmax",
        ylabel="mean largest weight",
        ylim=(0, 1),
    )
    gradient.set(
        title="Gradient through softmax",
        ylabel="mean norm of the Jacobian",
        ylim=(0, None),
    )
    return figure, facts
