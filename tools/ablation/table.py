"""The table of the ablations, beside the paper's."""

from collections.abc import Iterable, Sequence
from statistics import mean
from typing import Any

from ablation.rows import ROWS

_HEAD = (
    "| row | changes | parameters | perplexity | BLEU | seeds "
    "| paper: parameters | perplexity | BLEU |\n"
    "|---|---|---|---|---|---|---|---|---|\n"
)
_SHOWN = (
    *("num_layers", "d_model", "d_ff", "num_heads", "d_k"),
    *("dropout", "label_smoothing", "position", "train_steps"),
)


def summary(row: str, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Joins the results of a row's seeds: the means, and every seed's values.

    Each result has `bleu`, `perplexity`, `parameters`, `seed` and `hparams`.
    """
    first = results[0]
    return {
        "row": row,
        "parameters": first["parameters"],
        "seeds": [each["seed"] for each in results],
        "signature": first["signature"],
        "sentences": first["sentences"],
        "hparams": {name: first["hparams"][name] for name in _SHOWN},
        "paper": ROWS[row]._asdict(),
        **{
            name: mean(each[name] for each in results)
            for name in ("bleu", "perplexity")
        },
        **{
            f"{name}_of_each": [each[name] for each in results]
            for name in ("bleu", "perplexity")
        },
    }


def as_markdown(rows: Iterable[dict[str, Any]]) -> str:
    """Writes summaries as a table; mean and, in brackets, every seed's value."""
    rows = list(rows)
    base = rows[0]["hparams"]
    lines = []
    for each in rows:
        paper = each["paper"]
        changed = {k: v for k, v in each["hparams"].items() if v != base[k]}
        told = ", ".join(f"{key} {value}" for key, value in changed.items()) or "-"
        millions = paper["parameters"]
        lines.append(
            f"| {each['row']} | {told} | {each['parameters']:,} "
            f"| {_figure(each, 'perplexity')} | {_figure(each, 'bleu')} "
            f"| {len(each['seeds'])} | {f'{millions}M' if millions else '-'} "
            f"| {paper['perplexity']:.2f} | {paper['bleu']:.1f} |\n"
        )
    return _HEAD + "".join(lines)


def _figure(row: dict[str, Any], name: str) -> str:
    each = row[f"{name}_of_each"]
    if len(each) == 1:
        return f"{row[name]:.2f}"
    return f"{row[name]:.2f} ({', '.join(f'{value:.2f}' for value in each)})"
