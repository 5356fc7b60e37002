"""Measures how much of the batches of a corpus is padding, for every kind of batching.

    python tools/measure_padding.py --source_file train.en --target_file train.de
        [--vocab_file vocab.model] [--tokens_per_batch 25000] [--json]

Without `--vocab_file` a vocabulary of `--vocab_size` byte pairs is learned from the
text. Each kind is planned twice, with batches of one part and with batches of the
parts that `--max_tokens_per_device` makes of them. The columns:

* shapes: different (rows, source width, target width);
* full: mean of a batch's positions, by its parts' wider sides, over the bound;
* tokens: symbols, the ends of sentences included, over rows x (source + target),
  filler rows counted: the rest is padding;
* left out: pairs with a side of more than `--max_length` subwords;
* together again: of two pairs that share a batch, how many share one in the next
  epoch, too. If all were drawn at random, it would be one over the batches.
"""

import itertools
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from t2t_repro.batches.batching import (
    BATCHING_KINDS,
    BatchingConfig,
    EpochPlan,
    plan_epoch,
)
from t2t_repro.command_line import cli
from t2t_repro.hparams import HParams
from t2t_repro.system.atomic_file import iterate_pairs
from t2t_repro.system.errors import UserError

Lengths = npt.NDArray[np.int32]


class Row(NamedTuple):
    """What an epoch of one kind of batching is like; see the file's top.

    `tokens_per_part` is the bound of a part, `share` the tokens among all positions.
    """

    kind: str
    tokens_per_part: int
    shapes: int
    parts: int
    batches: int
    full: float
    share: float
    left_out: float
    together_again: float


HEAD = (
    "kind           part of  shapes    parts  batches   full  tokens  left out  "
    "together again"
)
LINE = "{:11} {:10,} {:7,} {:8,} {:8,} {:6.1%} {:7.1%} {:9.2%} {:15.1%}"


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, plans the epochs and prints the table."""
    args = _parser().parse_args(argv)
    if len(args.source_file) != len(args.target_file):
        raise UserError(
            f"--source_file names {len(args.source_file)} files but --target_file "
            f"{len(args.target_file)}: give as many"
        )
    # It knows how a batch is divided, and refuses bounds that hold no sentence.
    bounds = HParams(
        tokens_per_batch=args.tokens_per_batch,
        max_tokens_per_device=args.max_tokens_per_device,
        max_length=args.max_length,
    )
    files = zip(args.source_file, args.target_file, strict=True)
    pairs = [pair for names in files for pair in iterate_pairs(*names)]
    cli.start_tensorflow(args.verbose)
    lengths = lengths_of(pairs, args.vocab_file, args.vocab_size)
    rows = measure(lengths, bounds, args.max_shapes)
    tokens = lengths.sum(axis=0, dtype=np.int64).tolist()
    told = f"{len(lengths):,} pairs, {tokens[0]:,} and {tokens[1]:,} tokens"
    values = {
        "pairs": len(lengths),
        "tokens": tokens,
        "tokens_per_batch": bounds.tokens_per_batch,
        "rows": [row._asdict() for row in rows],
    }
    text = "\n".join([told, "", HEAD, *(LINE.format(*row) for row in rows)])
    cli.print_result(text, values, args.json)


def lengths_of(
    pairs: Sequence[tuple[str, str]], vocab_file: str | None, vocab_size: int
) -> Lengths:
    """Counts tokens of pairs with text on both sides: int32 (pairs, 2), EOS included.

    Without a `vocab_file` a vocabulary of `vocab_size` is learned from the pairs.
    """
    from t2t_repro.data.shard_encoding import encode_pairs
    from t2t_repro.tokenizers.load import load_tokenizer
    from t2t_repro.tokenizers.vocabulary import build_vocabulary

    with tempfile.TemporaryDirectory() as folder:
        path = Path(vocab_file or f"{folder}/vocab.model")
        if not vocab_file:
            lines = itertools.chain.from_iterable(pairs)
            build_vocabulary("sentencepiece", lines, vocab_size, path)
        tokenizer = load_tokenizer(path)
    chunks = [found for (_, found), _ in encode_pairs(pairs, tokenizer, {})]
    return np.concatenate(chunks) if chunks else np.zeros((0, 2), np.int32)


def measure(lengths: Lengths, bounds: HParams, max_shapes: int) -> list[Row]:
    """Plans epochs of all kinds for int32 (pairs, 2) tokens.

    `bounds` has the bounds of batches and parts, the longest side, and the seed.
    """
    parts = {bounds.tokens_per_batch, bounds.tokens_per_part}
    return [
        _row(
            lengths,
            BatchingConfig(
                tokens_per_batch=bounds.tokens_per_batch,
                kind=kind,
                max_length=bounds.max_length,
                tokens_per_part=part,
                max_shapes=max_shapes,
            ),
            bounds.seed,
        )
        for part in sorted(parts, reverse=True)
        for kind in BATCHING_KINDS
    ]


def _row(lengths: Lengths, config: BatchingConfig, seed: int) -> Row:
    plan, following = (plan_epoch(lengths, config, seed, epoch) for epoch in (0, 1))
    return Row(
        kind=config.kind,
        tokens_per_part=config.part_bound,
        shapes=plan.distinct_shapes,
        parts=plan.parts,
        batches=plan.batches,
        full=float(plan.sizes.mean()) / config.tokens_per_batch,
        share=plan.token_ratio,
        left_out=plan.dropped / len(lengths),
        together_again=together_again(*map(_batch_of_pairs, (plan, following))),
    )


def together_again(
    one: npt.NDArray[np.integer], other: npt.NDArray[np.integer]
) -> float:
    """Returns the share of the pairs of pairs in one batch that share another, too.

    `one` and `other` are int (pairs,), the batch of every pair in two epochs.
    """
    _, both = np.unique(np.stack([one, other]), axis=1, return_counts=True)
    before = np.bincount(one)
    pairs = int((before * (before - 1)).sum())
    return int((both * (both - 1)).sum()) / pairs if pairs else 0.0


def _batch_of_pairs(plan: EpochPlan) -> npt.NDArray[np.integer]:
    """Returns the batch of every pair that is used, in the order of their numbers."""
    numbers = [plan.indices(batch) for batch in range(plan.batches)]
    of_each = np.repeat(np.arange(plan.batches), [len(each) for each in numbers])
    found: npt.NDArray[Any] = of_each[np.argsort(np.concatenate(numbers))]
    return found


def _parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser(
        "Measures how much of the batches of a corpus is padding."
    )
    add = parser.add_argument
    add("--source_file", required=True, nargs="+", help="text, one sentence a line")
    add("--target_file", required=True, nargs="+", help="its translation, as many")
    add("--vocab_file", help="the vocabulary; without it one is learned")
    add("--vocab_size", type=cli.at_least(3), default=16_000, help="of that one")
    defaults = HParams().resolve_auto()
    for name, text, least in (
        ("tokens_per_batch", "positions a side of a batch", 1),
        ("max_tokens_per_device", "the most of a part; 0: no bound", 0),
        ("max_length", "longest side of a pair that is used", 2),
    ):
        kind, default = cli.at_least(least), getattr(defaults, name)
        add(f"--{name}", type=kind, default=default, help=text)
    add("--max_shapes", type=cli.at_least(1), default=48, help="of kind buckets")
    return parser


if __name__ == "__main__":
    cli.run(main)
