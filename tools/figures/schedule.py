"""Figure of the learning rate over steps, for several warm-ups and widths."""

import numpy as np

from figures import style

WARMUPS = (1000, 4000, 8000, 16000)
WIDTHS = (128, 512, 1024)
STEPS = 40_000


def draw() -> style.Drawn:
    """Draws the figure; returns it and the numbers in it."""
    from t2t_repro.training.schedules import paper_rate, t2t_rate

    steps = np.arange(0, STEPS, 50)
    figure, (warmups, widths) = style.panels(2, width=4.2)
    peaks = {}
    for axes, number, width, warmup, label in (
        *((warmups, n, 512, x, f"{x:,} warm-up steps") for n, x in enumerate(WARMUPS)),
        *((widths, n, x, 4000, f"d_model = {x}") for n, x in enumerate(WIDTHS)),
    ):
        rates = 1e3 * np.asarray(paper_rate(steps, d_model=width, warmup_steps=warmup))
        peaks[f"d_model {width}, warm-up {warmup}"] = float(rates.max()) / 1e3
        axes.plot(steps, rates, label=label, **style.line(number))
    warmups.set(title="Paper equation (3), d_model = 512")
    later = 2e3 * np.asarray(t2t_rate(steps, d_model=512, warmup_steps=8000))
    widths.plot(
        steps, later, label="t2t_base (512; 8,000; twice)", **style.line(len(WIDTHS))
    )
    widths.set(title="4,000 warm-up steps, several widths")
    for axes in (warmups, widths):
        axes.set(xlabel="step", ylabel="learning rate / 0.001", ylim=(0, None))
        axes.set_xticks(range(0, STEPS + 1, 10_000), ["0", "10k", "20k", "30k", "40k"])
        axes.legend()
    return figure, {"largest_rate": peaks}
