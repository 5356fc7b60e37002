"""Reproduces the paper's table 2: training cost and BLEU of each model.

    python tools/reproduce_table2.py [--tokens_per_second 25000] [--models DIR] [--json]

The table has base and big for English-German and English-French: the command, the
number of target tokens, the training operations (by the paper's estimate of hours x
GPUs x sustained FLOP/s, and counted in matmuls), the training time, and the BLEU scores
of models in `--models`. The training time assumes the FLOP/s that base reaches at
`--tokens_per_second`.
"""

import json
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.report import markdown
from flags import parser
from model_costs import parameters, training_flops

from t2t_repro import hparams
from t2t_repro.command_line import cli
from t2t_repro.system.errors import UserError

GPUS = 8
SUSTAINED = 9.5e12
"""Sustained single-precision FLOP/s of a P100 (the paper's footnote 5)."""

MEAN_LENGTH = 30
"""Mean subwords per sentence in WMT14: 25.8 English words (Luong et al. 2015) at about
1.2 subwords per word. Only the matmuls of attention depend on it."""


class Paper(NamedTuple):
    """Figures of the paper (table 2, sections 5.2 and 6.1).

    Attributes:
        bleu: Tokenized BLEU, with split compounds for English-German.
        flops: Number of floating-point operations of the whole training run.
        hours: Training time on eight P100 GPUs; None if the paper does not give it.
    """

    bleu: float
    flops: float
    hours: float | None = None


# The paper's table gives one cost for both language pairs.
PAPER = {
    "base": Paper(27.3, 3.3e18, 12),
    "big": Paper(28.4, 2.3e19, 84),
    "base_enfr": Paper(38.1, 3.3e18),
    "big_enfr": Paper(41.8, 2.3e19, 84),
}

SCORES = (
    *("bleu", "signature", "paper_bleu", "paper_signature"),
    "paper_bleu_original_quotes",
)
"""Entries of a training run's result."""

COLUMNS = {
    "command": ("command", "`{}`"),
    "parameters": ("parameters", "{:,}"),
    "steps": ("steps", "{:,}"),
    "target_tokens": ("target tokens", "{:.2g}"),
    "counted_flops": ("counted operations", "{:.2g}"),
    "estimated_flops": ("paper's hours x GPUs x 9.5e12", "{:.2g}"),
    "paper_flops": ("paper's operations", "{:.2g}"),
    "hours": ("hours", "{:,.1f}"),
    "paper_bleu_reported": ("paper's BLEU", "{}"),
    "bleu": ("our sacreBLEU", "{:.2f}"),
    "paper_bleu": ("our BLEU by the paper's definition", "{:.2f}"),
}
"""Column and format of each entry of a row."""


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags and prints the table."""
    args = parser(
        __doc__,
        (
            "tokens_per_second",
            cli.float_range(0, 1e9),
            None,
            "training speed of base",
        ),
        ("models", str, None, "folder with the model directories of train"),
    ).parse_args(argv)
    rows = [compute_row(name, args) for name in PAPER]
    cli.print_result(format_markdown(rows), {"rows": rows}, args.json)


def compute_row(name: str, args: Namespace) -> dict[str, Any]:
    """Computes a row of the table; unknown hours and BLEU scores are None."""
    values, paper = hparams.load(name), PAPER[name]
    # A batch has about 25,000 tokens per side (section 5.1 of the paper).
    target_tokens = values.train_steps * values.tokens_per_batch
    flops = target_tokens * flops_per_token(name)
    speed = args.tokens_per_second
    result = _result(Path(args.models), name) if args.models else {}
    return {
        "set": name,
        "command": f"python -m t2t_repro.train --hparams {name}",
        "parameters": parameters(values, values.vocab_size),
        "steps": values.train_steps,
        "target_tokens": target_tokens,
        "counted_flops": flops,
        "paper_flops": paper.flops,
        "estimated_flops": paper.hours and paper.hours * 3600 * GPUS * SUSTAINED,
        "hours": speed and flops / (speed * flops_per_token("base")) / 3600,
        "paper_bleu_reported": paper.bleu,
        **{key: result.get(key) for key in SCORES},
    }


def flops_per_token(name: str) -> float:
    """Returns the training operations per pair of a source and a target token."""
    values = hparams.load(name)
    pair = training_flops(values, values.vocab_size, MEAN_LENGTH, MEAN_LENGTH)
    return pair / MEAN_LENGTH


def format_markdown(rows: Sequence[dict[str, Any]]) -> str:
    """Formats rows as a Markdown table."""
    table: dict[str, dict[str, str]] = {}
    for row in rows:
        cells = table[row["set"]] = {
            title: "-" if row[key] is None else template.format(row[key])
            for key, (title, template) in COLUMNS.items()
        }
        if (original := row["paper_bleu_original_quotes"]) is not None:
            cells[COLUMNS["paper_bleu"][0]] += f" (original quotes: {original:.2f})"
    return "\n".join(markdown(table))


def _result(models: Path, name: str) -> dict[str, Any]:
    """Reads the result of a set's training run; {} without a result.

    Raises UserError if the file is damaged.
    """
    problem = hparams.load(name).problem
    path = models / f"{name}.{problem}" / "result.json"
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}
    except (TypeError, ValueError):
        raise UserError(f"{path} is damaged; remove it or train again") from None


if __name__ == "__main__":
    cli.run(main)
