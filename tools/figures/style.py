"""How all figures look: legible on light and dark ground, for any eyes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_repro.system.errors import UserError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#7b7b7b"
"""Text, axes and grid: the grey between white and a dark page's ground."""

COLOURS = ("#0f82c8", "#d9730d", "#0c9a6c", "#c667a0", "#8f8420", "#9a6fd0")
"""After Okabe and Ito, at brightnesses that stand out on white and on dark alike."""

DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))
"""Lines differ in their dashes too, for those who do not see their colours differ."""

SEQUENTIAL = "cividis"
DIVERGING = "PuOr"

Drawn = tuple["Figure", dict[str, Any]]
"""A figure and its numbers."""

_SETTINGS: Any = {
    "font.size": 9,
    "axes.titlesize": 9,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "axes.titlecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": INK,
    "grid.alpha": 0.25,
    "axes.grid": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.8,
    "figure.dpi": 100,
    "savefig.dpi": 130,
    # Text stays text, and a picture drawn twice is the same file.
    "svg.fonttype": "none",
    "svg.hashsalt": "t2t_repro",
}


def require_matplotlib() -> None:
    """Raises UserError if Matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise UserError(
            "Matplotlib is not installed; install it with pip install "
            "'t2t_repro[figures]'"
        ) from None


@contextmanager
def styled() -> Iterator[None]:
    """Lets figures drawn in this context look as they should, without a screen."""
    import matplotlib

    with matplotlib.rc_context(_SETTINGS):
        yield


def panels(
    columns: int, rows: int = 1, *, width: float = 3.6, height: float = 2.9
) -> tuple[Figure, list[Axes]]:
    """Makes a figure of rows * columns panels of a width and height in inches."""
    from matplotlib.figure import Figure

    size = (width * columns, height * rows)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    return figure, list(axes.flat)


def line(number: int) -> dict[str, Any]:
    """Returns colour and dashes of a figure's line of some number."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "linestyle": DASHES[number % len(DASHES)],
    }


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Writes a figure, drawn in `styled`, as PNG and SVG; returns the two files."""
    paths = [folder / f"{name}.png", folder / f"{name}.svg"]
    figure.savefig(paths[0], metadata={"Software": None})
    figure.savefig(paths[1], metadata={"Date": None})
    return paths
