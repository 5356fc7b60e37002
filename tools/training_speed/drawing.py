"""The cost curve as a picture: speed against the length of sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from figures import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(
    sizes: Mapping[str, Mapping[str, Sequence[tuple[int, float]]]],
) -> Figure:
    """Draws a panel for each size, a line for each contender.

    Args:
        sizes: as `report.series` returns it: (length, tokens/s).
    """
    figure, panels = style.panels(len(sizes))
    for axes, (size, lines) in zip(panels, sizes.items(), strict=True):
        for number, (name, points) in enumerate(lines.items()):
            lengths, speeds = zip(*points, strict=True)
            axes.plot(lengths, speeds, label=name, marker="o", **style.line(number))
        axes.set(title=size, xlabel="tokens of a sentence", ylim=(0, None))
        axes.set_xscale("log", base=2)
        axes.set_xticks(lengths, [str(length) for length in lengths])
        axes.minorticks_off()
    panels[0].set_ylabel("target tokens per second")
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=2)
    return figure


def write(
    sizes: Mapping[str, Mapping[str, Sequence[tuple[int, float]]]], path: Path
) -> None:
    """Writes what `draw` draws.

    Args:
        sizes: as `draw` takes them.
        path: the file; its ending chooses the format.
    """
    with style.styled():
        draw(sizes).savefig(path, metadata={"Date": None})
