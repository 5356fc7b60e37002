"""Figure for table 1: operations, time and path length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from figures import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(
    lengths: Sequence[int],
    d: int,
    layers: Mapping[str, Mapping[str, Sequence[float]]],
    paths: Mapping[str, Mapping[int, int]],
) -> Figure:
    """Draws operations, times and path lengths, with one line per kind of layer.

    Args:
        lengths: Values of n for operations and times.
        d: Number of channels of the layers for operations and times.
        layers: Kind -> "operations" (multiplications) and "seconds" for each n.
        paths: Kind -> n -> path length.
    """
    figure, (count, clock, path) = style.panels(3)
    for number, (kind, values) in enumerate(layers.items()):
        look = style.marked_line(number) | {"label": kind}
        count.plot(lengths, values["operations"], **look)
        clock.plot(lengths, [1e3 * value for value in values["seconds"]], **look)
        if kind in paths:
            path.plot(list(paths[kind]), list(paths[kind].values()), **look)
    for axes in (count, clock, path):
        axes.set(yscale="log", xlabel="n (positions)")
        axes.set_xscale("log", base=2)
    for axes in (count, clock):
        axes.axvline(d, color=style.INK, linewidth=0.8)
        place = ("data", "axes fraction")
        axes.annotate("n = d", (d, 0.02), xycoords=place, rotation=90)
    count.set(title=f"Operations, d = {d}", ylabel="multiplications")
    clock.set(title=f"Time of a layer, d = {d}, one core", ylabel="CPU time (ms)")
    path.set(title="Longest path between two positions", ylabel="layers or steps")
    handles, names = count.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names))
    return figure
