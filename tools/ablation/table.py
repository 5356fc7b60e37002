"""Table of the ablations, next to the paper's figures."""

from collections.abc import Sequence
from statistics import mean
from typing import Any

from benchmarks.report import markdown

from ablation.rows import ROWS

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
        name: first[name] for name in ("row", "parameters", "signature", "sentences")
    }
    combined["seeds"] = [each["seed"] for each in results]
    combined["hparams"] = {name: first["hparams"][name] for name in _SHOWN}
    combined["paper"] = ROWS[row]._asdict()
    for name in ("bleu", "perplexity"):
        combined[f"{name}_of_each"] = [each[name] for each in results]
        combined[name] = mean(combined[f"{name}_of_each"])
    return combined


def format_markdown(rows: Sequence[dict[str, Any]]) -> str:
    """Formats summaries as a table with means and, in brackets, the values by seed."""
    base, table = rows[0]["hparams"], {}
    for each in rows:
        paper, hparams = each["paper"], each["hparams"]
        millions = paper["parameters"]
        changed = [f"{key} {hparams[key]}" for key in base if hparams[key] != base[key]]
        table[each["row"]] = {
            "changes": ", ".join(changed) or "-",
            "parameters": f"{each['parameters']:,}",
            "perplexity": _figure(each, "perplexity"),
            "BLEU": _figure(each, "bleu"),
            "seeds": str(len(each["seeds"])),
            "paper: parameters": f"{millions}M" if millions else "-",
            "paper: perplexity": f"{paper['perplexity']:.2f}",
            "paper: BLEU": f"{paper['bleu']:.1f}",
        }
    return "\n".join(markdown(table)) + "\n"


def _figure(row: dict[str, Any], name: str) -> str:
    mean, *each = (f"{x:.2f}" for x in (row[name], *row[f"{name}_of_each"]))
    return f"{mean} ({', '.join(each)})" if len(each) > 1 else mean
