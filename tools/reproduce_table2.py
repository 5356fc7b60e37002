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


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags and prints the table."""
    args = _parse(argv)
    rows = [row_of(name, args) for name in PAPER]
    cli.print_result(as_markdown(rows), {"rows": rows}, args.json)


def row_of(name: str, args: Namespace) -> dict[str, Any]:
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
        "bleu": result.get("bleu"),
        "signature": result.get("signature"),
        "paper_bleu": result.get("paper_bleu"),
        "paper_signature": result.get("paper_signature"),
        "paper_bleu_original_quotes": result.get("paper_bleu_original_quotes"),
    }


def flops_per_token(name: str) -> float:
    """Returns the training operations per pair of a source and a target token."""
    values = hparams.load(name)
    pair = training_flops(values, values.vocab_size, MEAN_LENGTH, MEAN_LENGTH)
    return pair / MEAN_LENGTH


def as_markdown(rows: Sequence[dict[str, Any]]) -> str:
    """Formats rows as a Markdown table."""
    lines = [
        "| set | command | parameters | steps | target tokens | counted operations "
        "| paper's hours x GPUs x 9.5e12 | paper's operations | hours | paper's BLEU "
        "| our sacreBLEU | our BLEU by the paper's definition |",
        "|---" * 12 + "|",
    ]
    for row in rows:
        lines.append(
            f"| {row['set']} | `{row['command']}` | {row['parameters']:,} "
            f"| {row['steps']:,} | {row['target_tokens']:.2g} "
            f"| {row['counted_flops']:.2g} | {_or_dash(row['estimated_flops'], '.2g')} "
            f"| {row['paper_flops']:.2g} | {_or_dash(row['hours'], ',.1f')} "
            f"| {row['paper_bleu_reported']} | {_or_dash(row['bleu'], '.2f')} "
            f"| {_paper_bleu(row)} |"
        )
    return "\n".join(lines)


def _paper_bleu(row: dict[str, Any]) -> str:
    original = row["paper_bleu_original_quotes"]
    text = _or_dash(row["paper_bleu"], ".2f")
    return text if original is None else f"{text} (original quotes: {original:.2f})"


def _or_dash(value: float | None, spelling: str) -> str:
    return "-" if value is None else format(value, spelling)


def _result(models: Path, name: str) -> dict[str, Any]:
    """Reads the result of a set's training run; {} without a result.

    Raises UserError if the file is damaged.
    """
    problem = hparams.load(name).problem
    path = models / f"{name}.{problem}" / "result.json"
    if not path.exists():
        return {}
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(result, dict):
            raise ValueError
    except ValueError:
        raise UserError(f"{path} is damaged; remove it or train again") from None
    return result


def _parse(argv: Sequence[str] | None) -> Namespace:
    parser = cli.ArgumentParser(
        "Reproduces the paper's table 2: training cost and BLEU of each model."
    )
    parser.add_argument(
        "--tokens_per_second",
        type=cli.between(0, 1e9),
        help="training speed of base on your machine in target tokens/s, to compute "
        "the hours",
    )
    parser.add_argument("--models", help="folder with the model directories of train")
    return parser.parse_args(argv)


if __name__ == "__main__":
    cli.run(main)
