"""Figure of the positional encoding: values, dot products and linear maps."""

from typing import Any

import numpy as np
import numpy.typing as npt

from figures import style

Array = npt.NDArray[np.floating[Any]]

D_MODEL = 128
POSITIONS = 512
SHIFTS = (1, 2, 4, 8, 16, 32, 64)
REACH = 100


def encoding(positions: int, d_model: int) -> Array:
    """Returns tensor2tensor's sinusoids: float32 (positions, d_model)."""
    from t2t_repro.layers.position import sinusoid

    return np.asarray(sinusoid(np.arange(positions), d_model))


def shift_map(shift: int, d_model: int) -> Array:
    """Returns the matrix M with PE(pos + shift) = M PE(pos).

    M rotates the sine and the cosine of each rate w by the angle w * shift (paper
    section 3.5: "for any fixed offset k, PE(pos+k) can be represented as a linear
    function of PE(pos)").

    Args:
        shift: Offset in positions.
        d_model: Even number of channels: all sines, then all cosines.

    Returns:
        float64 (d_model, d_model).
    """
    from t2t_repro.layers.position import sinusoid_rates

    angle = sinusoid_rates(d_model).astype(np.float64) * shift
    cosine, sine = np.diag(np.cos(angle)), np.diag(np.sin(angle))
    return np.block([[cosine, sine], [-sine, cosine]])


def map_error(table: Array, shift: int) -> float:
    """Returns the largest error of a shift's map on sinusoids (positions, d_model)."""
    mapped = table[:-shift] @ shift_map(shift, table.shape[1]).T
    return float(np.abs(mapped - table[shift:]).max())


def fitted_error(table: Array, shift: int) -> float:
    """Fits a linear map to every second position and tests it on the others.

    Args:
        table: Position signal, float (positions, d_model).
        shift: Offset in positions.

    Returns:
        Root mean square error relative to the root mean square of the table.
    """
    now, later = table[:-shift], table[shift:]
    # Slow waves are almost constant; rcond ignores differences below float32 precision.
    fitted, *_ = np.linalg.lstsq(now[::2], later[::2], rcond=1e-6)
    error = now[1::2] @ fitted - later[1::2]
    return float(np.sqrt((error**2).mean() / (table**2).mean()))


def dot_products(table: Array, position: int, reach: int) -> Array:
    """Returns PE(pos) · PE(pos + k) / (d_model / 2) for k from -reach to reach."""
    near = table[position - reach : position + reach + 1]
    return near @ table[position] / (table.shape[1] / 2)


def draw() -> style.Drawn:
    """Draws the figure; returns it and the numbers in it."""
    table = encoding(POSITIONS, D_MODEL)
    learned = np.random.default_rng(1).normal(size=table.shape)
    figure, (waves, dots, maps) = style.panels(3)
    image = waves.imshow(
        table[:100].T, aspect="auto", cmap=style.DIVERGING, interpolation="nearest"
    )
    waves.set(title=f"PE, d_model = {D_MODEL}: sines above, cosines below")
    waves.set(xlabel="position", ylabel="channel")
    waves.grid(visible=False)
    figure.colorbar(image, ax=waves, label="value")
    distances = np.arange(-REACH, REACH + 1)
    for number, position in enumerate((120, 250, 400)):
        products, label = dot_products(table, position, REACH), f"pos = {position}"
        dots.plot(distances, products, label=label, **style.line(number))
    dots.set(title="PE(pos) · PE(pos + k) depends only on |k|")
    dots.set(xlabel="distance k (positions)", ylabel="dot product / (d_model / 2)")
    dots.legend()
    exact = [map_error(table, shift) for shift in SHIFTS]
    fitted = [fitted_error(table, shift) for shift in SHIFTS]
    random = [fitted_error(learned, shift) for shift in SHIFTS]
    for number, marker, errors, label in (
        (1, "^-", random, "fitted, random vectors"),
        (2, "s-", fitted, "fitted, sinusoid"),
        (0, "o-", exact, "rotation by w k, sinusoid (maximum)"),
    ):
        colour = style.COLOURS[number]
        maps.plot(SHIFTS, errors, marker, label=label, color=colour, markersize=4)
    maps.set(title="PE(pos + k) as a fixed linear map of PE(pos)")
    maps.set(xlabel="k (positions)", ylabel="error (1 = size of PE)")
    maps.set(xscale="log", yscale="log", ylim=(1e-8, 100))
    maps.legend()
    return figure, {
        "largest_map_error": max(exact),
        "fitted_error_sinusoid": max(fitted),
        "fitted_error_random_table": min(random),
    }
