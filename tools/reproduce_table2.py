"""The paper's table 2: what each model costs, and what it reached where it was trained.

    python tools/reproduce_table2.py [--tokens_per_second 25000] [--models DIR] [--json]

For base and big, English-German and English-French: the command, the operations of the
whole training by the paper's estimate (hours x GPUs x what one sustains) and by
counting products, the target tokens, the time at a throughput measured with base (the
others are taken to do as many operations a second), and both BLEU figures of results in
`--models`.
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
"""Single-precision operations a second of a P100 (the paper's footnote 5)."""

# Section 5.1 of the paper: a batch holds about 25,000 tokens of either side, of which
# the mean sentence of WMT14 has so many subwords (25.8 words of English, Luong et al.
# 2015, at about 1.2 subwords a word). Only attention's products depend on it.
MEAN_LENGTH = 30


class Paper(NamedTuple):
    """What the paper reports (table 2, sections 5.2 and 6.1); None where it does not.

    BLEU is tokenised, compounds split for English-German; flops and hours (on eight
    P100) are of the whole training.
    """

    bleu: float
    flops: float
    hours: float | None = None


# The table gives one cost for both languages.
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
    """Computes a row of `PAPER` by name; None for hours and BLEU that are unknown."""
    chosen, paper = hparams.load(name), PAPER[name]
    target_tokens = chosen.train_steps * chosen.tokens_per_batch
    flops = target_tokens * flops_per_token(name)
    speed = args.tokens_per_second
    result = _result(Path(args.models), name) if args.models else {}
    return {
        "set": name,
        "command": f"python -m t2t_repro.train --hparams {name}",
        "parameters": parameters(chosen, chosen.vocab_size),
        "steps": chosen.train_steps,
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
    """Counts the operations that a target token, and a source token, cost a set."""
    chosen = hparams.load(name)
    pair = training_flops(chosen, chosen.vocab_size, MEAN_LENGTH, MEAN_LENGTH)
    return pair / MEAN_LENGTH


def as_markdown(rows: Sequence[dict[str, Any]]) -> str:
    """Writes rows as a table for people."""
    lines = [
        "| set | command | parameters | steps | target tokens | operations, counted "
        "| hours x GPUs x 9.5e12 | paper | hours | paper's BLEU | sacreBLEU here "
        "| paper's definition here |",
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
    found = _or_dash(row["paper_bleu"], ".2f")
    return found if original is None else f"{found} (original quotes: {original:.2f})"


def _or_dash(value: float | None, spelling: str) -> str:
    return "-" if value is None else format(value, spelling)


def _result(models: Path, name: str) -> dict[str, Any]:
    """Reads the result of a set's training, {} if none is there; UserError: damaged."""
    problem = hparams.load(name).problem
    path = models / f"{name}.{problem}" / "result.json"
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise ValueError
    except ValueError:
        raise UserError(f"{path} is damaged; train again or remove it") from None
    return found


def _parse(argv: Sequence[str] | None) -> Namespace:
    parser = cli.ArgumentParser(
        "The paper's table 2: what each model costs, and what it reached."
    )
    parser.add_argument(
        "--tokens_per_second",
        type=cli.between(0, 1e9),
        help="target tokens a second of base on your machine, as training prints "
        "them: gives the hours",
    )
    parser.add_argument(
        "--models", help="folder of the model directories, as train makes them"
    )
    args: Namespace = parser.parse_args(argv)
    return args


if __name__ == "__main__":
    cli.run(main)
