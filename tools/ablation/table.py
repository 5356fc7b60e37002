"""Table of the ablations, next to the paper's figures."""

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
    """Combines the results of a row's seeds into means and lists of values.

    Args:
        row: Name of the row.
        results: One result per seed, as stored in `trial.json`.
    """
    first = results[0]
    combined: dict[str, Any] = {
        "row": row,
        "parameters": first["parameters"],
        "seeds": [each["seed"] for each in results],
        "signature": first["signature"],
        "sentences": first["sentences"],
        "hparams": {name: first["hparams"][name] for name in _SHOWN},
        "paper": ROWS[row]._asdict(),
    }
    for name in ("bleu", "perplexity"):
        combined[f"{name}_of_each"] = [each[name] for each in results]
        combined[name] = mean(combined[f"{name}_of_each"])
    return combined


def as_markdown(rows: Iterable[dict[str, Any]]) -> str:
    """Formats summaries as a table with means and, in brackets, the values by seed."""
    rows = list(rows)
    base = rows[0]["hparams"]
    lines = []
    for each in rows:
        paper = each["paper"]
        changed = {k: v for k, v in each["hparams"].items() if v != base[k]}
        changes = ", ".join(f"{key} {value}" for key, value in changed.items()) or "-"
        millions = paper["parameters"]
        lines.append(
            f"| {each['row']} | {changes} | {each['parameters']:,} "
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
