"""Style of the figures: legible on light and dark pages and without color vision."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_repro.system.errors import UserError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#7b7b7b"
"""Color of text, axes and grid: a gray with contrast to light and dark backgrounds."""

COLOURS = ("#0f82c8", "#d9730d", "#0c9a6c", "#c667a0", "#8f8420", "#9a6fd0")
"""Colors by Okabe and Ito, adapted for contrast to light and dark backgrounds."""

DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))
"""Dashes of lines, which distinguish them without color vision."""

DIVERGING = "PuOr"

Drawn = tuple["Figure", dict[str, Any]]
"""A figure and the numbers in it."""

_SETTINGS: Any = {
    **dict.fromkeys(("text.color", "grid.color", "xtick.color", "ytick.color"), INK),
    **dict.fromkeys(("axes.labelcolor", "axes.edgecolor", "axes.titlecolor"), INK),
    **{f"{part}.facecolor": "none" for part in ("axes", "figure", "savefig")},
    **{"axes.spines.top": False, "axes.spines.right": False},
    **{"font.size": 9, "axes.titlesize": 9, "axes.grid": True, "grid.alpha": 0.25},
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.8,
    "figure.dpi": 100,
    "savefig.dpi": 130,
    # SVG files contain text as text and are reproducible.
    "svg.fonttype": "none",
    "svg.hashsalt": "t2t_repro",
}


def check_folder(output_dir: str) -> Path:
    """Returns the folder for figures.

    Raises UserError if it is a file or if Matplotlib is not installed.
    """
    folder = Path(output_dir)
    if folder.exists() and not folder.is_dir():
        raise UserError(f"--output_dir {folder} is a file; give a folder")
    if not find_spec("matplotlib"):
        raise UserError("Matplotlib is missing; run pip install matplotlib")
    return folder


@contextmanager
def use_style() -> Iterator[None]:
    """Applies the style to figures drawn in this context."""
    import matplotlib

    with matplotlib.rc_context(_SETTINGS):
        yield


def panels(
    columns: int, rows: int = 1, *, width: float = 3.6, height: float = 2.9
) -> tuple[Figure, list[Axes]]:
    """Creates a figure with a grid of panels of `width` by `height` inches each."""
    from matplotlib.figure import Figure

    size = (width * columns, height * rows)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    return figure, list(axes.flat)


def line(number: int) -> dict[str, Any]:
    """Returns color and dashes of the n-th line of a figure."""
    number %= len(COLOURS)
    return {"color": COLOURS[number], "linestyle": DASHES[number]}


def marked_line(number: int) -> dict[str, Any]:
    """Returns color, dashes and marker of the n-th line of a figure."""
    return line(number) | {"marker": "os^Dv"[number], "markersize": 4}


def draw_bars(axes: Axes, heights: dict[str, float], labels: list[str]) -> None:
    """Draws labelled bars, one per name."""
    colours = COLOURS[: len(heights)]
    bars = axes.bar(list(heights), list(heights.values()), color=colours, width=0.6)
    axes.bar_label(bars, labels, color=INK)
    axes.grid(visible=False, axis="x")


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Writes a figure drawn in `use_style` as PNG and SVG; returns both paths."""
    paths = [folder / f"{name}.png", folder / f"{name}.svg"]
    figure.savefig(paths[0], metadata={"Software": None})
    figure.savefig(paths[1], metadata={"Date": None})
    return paths
