"""Figure of the attention masks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from figures import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INPUTS = (5, 6, 7, 8, 9, 1, 0, 0)
TARGETS = (4, 5, 6, 7, 1, 0, 0, 0)
SEGMENTS = (1, 1, 1, 2, 2, 3, 3, 0)
TARGET_SEGMENTS = (1, 1, 2, 2, 2, 3, 3, 0)
RADIUS = 2


def visible() -> dict[str, npt.NDArray[np.bool_]]:
    """Returns the package's masks by name: bool (queries, keys), True if visible."""
    from t2t_repro.layers.local_attention import mask_distant_keys
    from t2t_repro.layers.masks import causal_mask, padding_mask

    length = len(INPUTS)
    source, target = np.array(SEGMENTS), np.array(TARGET_SEGMENTS)
    positions = np.arange(length)
    padding = np.repeat(padding_mask(np.array([INPUTS]))[0], length, axis=0)
    causal = np.array(causal_mask(length)[0])
    nearby = np.array(
        mask_distant_keys(None, positions[None, :] - positions[:, None], RADIUS)
    )
    return {
        "encoder and decoder to encoder:\npadding is hidden": padding,
        "decoder: later positions are hidden": causal,
        f"restricted self-attention,\nencoder, radius {RADIUS}": nearby & padding,
        f"restricted self-attention,\ndecoder, radius {RADIUS}": nearby & causal,
        "packed rows, decoder:\nother examples are hidden": causal
        & (target[:, None] == target),
        "packed rows, decoder to encoder": target[:, None] == source,
    }


def draw() -> tuple[Figure, dict[str, Any]]:
    """Draws the figure; returns it and the numbers in it."""
    from matplotlib.colors import ListedColormap

    by_name = visible()
    figure, all_axes = style.panels(3, 2, width=2.6, height=2.8)
    # Visible cells are filled and hidden cells empty, which needs no color vision.
    colours = ListedColormap(["#00000000", style.COLOURS[0]])
    for axes, (name, mask) in zip(all_axes, by_name.items(), strict=True):
        axes.imshow(mask, cmap=colours, vmin=0, vmax=1)
        axes.set(title=name, xlabel="key (position)", ylabel="query (position)")
        positions = np.arange(len(mask))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_ticks(positions)
            axis.set_ticks(np.append(positions, len(mask)) - 0.5, minor=True)
            axis.set_tick_params(which="minor", length=0)
        axes.grid(visible=False)
        axes.grid(which="minor", alpha=1, linewidth=0.5)
    pairs = {name.replace("\n", " "): int(mask.sum()) for name, mask in by_name.items()}
    return figure, {"pairs_seen": pairs}
