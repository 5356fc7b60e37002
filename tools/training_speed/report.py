"""What was measured, as tables for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

from benchmarking import Result, machine_lines

from training_speed.contenders import OURS, PRODUCTS, PROGRAMS, SQUARE, Work
from training_speed.products import flops, square

LIMITS = (PRODUCTS, SQUARE)


def summary(work: Work, found: Mapping[str, Result]) -> Result:
    """Turns seconds into tokens per second.

    Args:
        work: what was computed.
        found: what `in_turn.time_in_turn` returned.

    Returns:
        The work, its `tokens` and `flops` a step; and for each contender what was
        found with `tokens_per_second`, of the median round. For the square product
        these are the tokens of a step that ran all its products as fast.
    """
    of_step, of_square = flops(work.products()), flops(square())
    rows = {}
    for name, each in found.items():
        seconds = median(each["seconds_per_step"])
        if name.startswith(PROGRAMS[SQUARE].title):
            seconds *= of_step / of_square
        rows[name] = {
            **each,
            "tokens_per_second": work.tokens / seconds,
            "gigaflops_per_second": of_step / seconds / 1e9,
        }
    return {
        "work": asdict(work),
        "tokens": work.tokens,
        "flops": of_step,
        "contenders": rows,
        "ratios": ratios(rows),
    }


def ratios(rows: Mapping[str, Result]) -> dict[str, float]:
    """Compares this package with each other row of the same precision.

    Args:
        rows: by the contender's name, with `tokens_per_second`.

    Returns:
        By "ours / theirs", how many times as fast ours is.
    """
    found = {}
    for ours in (name for name in rows if name.startswith(f"{OURS} ")):
        precision = ours.removeprefix(f"{OURS} ")
        for theirs, row in rows.items():
            if theirs != ours and f" {precision}" in theirs:
                ratio = rows[ours]["tokens_per_second"] / row["tokens_per_second"]
                found[f"{ours} / {theirs}"] = ratio
    return found


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
    if result["curve"]:
        lines += ["", *curve_lines(result["curve"])]
    return "\n".join(lines)


def _case(case: Result) -> list[str]:
    """Writes one table: a row for each contender, then the ratios."""
    work, rows = case["work"], case["contenders"]
    wide = max(map(len, rows))
    lines = [
        f"{work['size']}: {work['batch_size']} x {work['length']} tokens, vocabulary "
        f"{work['vocab_size']:,}; {case['flops'] / 1e9:,.1f} GFLOP a step in products",
        f"{'':{wide}}  tokens/s  GFLOP/s  MB above imports  first step (s)",
    ]
    for name, row in rows.items():
        lines.append(
            f"{name:{wide}}  {row['tokens_per_second']:8,.0f}  "
            f"{row['gigaflops_per_second']:7,.0f}  "
            f"{row['memory'] / 1e6:16,.0f}  {median(row['start_seconds']):14.1f}"
        )
    lines += [f"  {pair}: {ratio:.2f}" for pair, ratio in case["ratios"].items()]
    return lines


def curve_lines(curve: Sequence[Result]) -> list[str]:
    """Writes how speed changes with the length of sentences and the size.

    A row for each case: tokens/s of every contender, and this package's share of what
    the products alone reach.
    """
    names = list(curve[0]["contenders"])
    lines = [f"size, length, GFLOP a token; tokens/s: {'; '.join(names)}; share"]
    for case in curve:
        work, rows = case["work"], case["contenders"]
        speeds = [f"{rows[name]['tokens_per_second']:8,.0f}" for name in names]
        shares = [f"{share:.0%}" for share in case["ratios"].values()]
        lines.append(
            f"{work['size']:6} {work['length']:5} "
            f"{case['flops'] / case['tokens'] / 1e9:7.3f}  "
            f"{'  '.join(speeds)}  {'  '.join(shares)}"
        )
    return lines


def series(curve: Sequence[Result]) -> dict[str, dict[str, list[tuple[int, float]]]]:
    """Arranges the curve's cases for drawing.

    Returns:
        By size, by contender, (length, tokens/s) in the order of the cases.
    """
    found: dict[str, dict[str, list[tuple[int, Any]]]] = {}
    for case in curve:
        lines = found.setdefault(case["work"]["size"], {})
        for name, row in case["contenders"].items():
            point = (case["work"]["length"], row["tokens_per_second"])
            lines.setdefault(name, []).append(point)
    return found
