"""What was measured of training steps, as tables and a picture for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median

from figures import style

from benchmarks.machine import Result, machine_lines
from benchmarks.work import SQUARE, Work, flops, products_of

OURS, PRODUCTS, A_SQUARE = "t2t_repro", "products of the step", "a square product"


def summary(work: Work, found: Mapping[str, Sequence[Result]]) -> Result:
    """Turns each contender's `seconds` of a step into tokens per second.

    Returns the work, its `tokens` and `flops` a step; for each contender the speed of
    the median round, and `memory`, the most bytes beside its imports; and `ratios`: by
    "ours / theirs", of the same precision, how many times as fast ours is. A square
    product's tokens are those of a step that ran all its products as fast.
    """
    of_step = flops(products_of(work))
    rows = {}
    for name, answers in found.items():
        rounds = [answer["seconds"] for answer in answers]
        seconds = median(rounds)
        if name.startswith(A_SQUARE):
            seconds *= of_step / flops(SQUARE)
        rows[name] = {
            "seconds_per_step": rounds,
            "start_seconds": [answer["start_seconds"] for answer in answers],
            "memory": max(answer["memory"] for answer in answers),
            "tokens_per_second": work.tokens / seconds,
            "gigaflops_per_second": of_step / seconds / 1e9,
        }
    speeds = {name: row["tokens_per_second"] for name, row in rows.items()}
    ratios = {
        f"{ours} / {theirs}": speeds[ours] / speeds[theirs]
        for ours in speeds
        for theirs in speeds
        if ours.startswith(f"{OURS} ") and ours != theirs
        if f" {ours.removeprefix(f'{OURS} ')}" in theirs
    }
    return {
        "work": asdict(work),
        "tokens": work.tokens,
        "flops": of_step,
        "contenders": rows,
        "ratios": ratios,
    }


def text_of(result: Result) -> str:
    """Writes the whole result for people."""
    lines = [*machine_lines(result["machine"])]
    lines += [f"{peer}: {told}" for peer, told in result["peers"].items()]
    for case in result["cases"]:
        lines += ["", *_case(case)]
    if result["start_up"]:
        lines += ["", "python -m t2t_repro.train, start to first update (each run):"]
    for size, seconds in result["start_up"].items():
        each = ", ".join(f"{value:.1f}" for value in seconds)
        lines.append(f"  {size}: {median(seconds):.1f} s ({each})")
    return "\n".join(lines)


def _case(case: Result) -> list[str]:
    """Writes one table: a row for each contender, then the ratios."""
    work, rows = case["work"], case["contenders"]
    wide = max(map(len, rows), default=0)
    gigaflops = case["flops"] / 1e9
    lines = [
        f"{work['size']}: {work['batch_size']} x {work['length']} tokens, vocabulary "
        f"{work['vocab_size']:,}; {gigaflops:,.1f} GFLOP a step in products, "
        f"{gigaflops / case['tokens']:.3f} a token",
        f"{'':{wide}}  tokens/s  GFLOP/s  MB above imports  first step (s)",
    ]
    for name, row in rows.items():
        lines.append(
            f"{name:{wide}}  {row['tokens_per_second']:8,.0f}  "
            f"{row['gigaflops_per_second']:7,.0f}  "
            f"{row['memory'] / 1e6:16,.0f}  {median(row['start_seconds']):14.1f}"
        )
    return lines + [f"  {pair}: {ratio:.2f}" for pair, ratio in case["ratios"].items()]


def series(cases: Sequence[Result]) -> dict[str, dict[str, list[tuple[int, float]]]]:
    """Returns by size, by contender, (length, tokens/s) in the order of the cases."""
    found: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for case in cases:
        lines = found.setdefault(case["work"]["size"], {})
        for name, row in case["contenders"].items():
            point = (case["work"]["length"], row["tokens_per_second"])
            lines.setdefault(name, []).append(point)
    return found


def draw(cases: Sequence[Result], path: Path) -> None:
    """Draws speed against sentence length: a panel a size, a line a contender."""
    sizes = series(cases)
    with style.styled():
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
        figure.savefig(path, metadata={"Date": None})
