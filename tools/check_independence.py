"""Shows that a translation depends on its sentence alone.

    python tools/check_independence.py --model_dir MODEL --input_file TEXT
        [--saved_model EXPORTED/1]

Translates line by line, then in other batches, in order and shuffled, also by a
SavedModel if named. Scores must agree within 1e-4, and lines must be the same, unless
their two scores are that close: these are listed, and at most 2 in 1,000 are allowed.
Exit status 1 if something differs otherwise.
"""

import random
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from flags import several

from t2t_repro.command_line import cli
from t2t_repro.system.atomic_file import read_lines

TOLERANCE = 1e-4
MOST_TIES = 2e-3


class Comparison(NamedTuple):
    """One way of translating beside the translation line by line.

    Attributes:
        name: the way.
        largest: the largest difference of scores.
        ties: lines that differ though their scores are that close: number from 1,
            both scores.
        others: lines that differ otherwise, likewise.
    """

    name: str
    largest: float
    ties: list[tuple[int, float, float]]
    others: list[tuple[int, float, float]]


Found = list[tuple[str, float]]
"""Each line's translation and score."""


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, translates in every way and prints what differs."""
    args = _parse(argv)
    lines = read_lines(args.input_file)
    cli.start_tensorflow(args.verbose)
    ways = translations(args, lines)
    _, expected = next(ways)
    comparisons = [compare(name, expected, found) for name, found in ways]
    failed = [
        each
        for each in comparisons
        if each.others or len(each.ties) > MOST_TIES * len(lines)
    ]
    text = [f"{len(lines):,} lines, one by one, and:", *map(describe, comparisons)]
    values = {
        "lines": len(lines),
        "ways": [each._asdict() for each in comparisons],
        "passed": not failed,
    }
    cli.print_result("\n".join(text), values, args.json)
    if failed:
        sys.exit(1)


def translations(args: Namespace, lines: list[str]) -> Iterator[tuple[str, Found]]:
    """Translates in every way, line by line first; yields names and translations."""
    import tensorflow as tf

    from t2t_repro.translation.loading import load_models
    from t2t_repro.translation.parallel_batches import give_each_batch_a_core

    give_each_batch_a_core()
    translator = load_models(args.model_dir, args.checkpoint).translator()
    order = list(range(len(lines)))
    random.Random(1).shuffle(order)
    mixed = [lines[n] for n in order]

    def translated(lines: list[str], batch_size: int, window: int) -> Found:
        found = translator.translate_lines(lines, batch_size, window)
        return [(each.text, each.score) for each in found]

    def in_order(shuffled: Found) -> Found:
        return [found for _, found in sorted(zip(order, shuffled, strict=True))]

    yield "one by one", translated(lines, 1, 1)
    for size in args.batch_sizes:
        yield f"batches of {size} by length", translated(lines, size, len(lines))
        shuffled = translated(mixed, size, size)
        yield f"batches of {size}, shuffled", in_order(shuffled)
    if args.saved_model:
        import tensorflow_text  # noqa: F401  # Its operations are the tokenizer's.

        signature = tf.saved_model.load(args.saved_model).signatures["serving_default"]
        for size in args.batch_sizes:
            served: Found = []
            for n in range(0, len(mixed), size):
                result = signature(text=tf.constant(mixed[n : n + size]))
                texts = [text.decode() for text in result["translations"].numpy()]
                served += zip(texts, result["scores"].numpy().tolist(), strict=True)
            yield f"SavedModel, {size} shuffled", in_order(served)


def compare(name: str, expected: Found, found: Found) -> Comparison:
    """Compares two translations of the same lines."""
    ties, others, largest = [], [], 0.0
    for number, (one, other) in enumerate(zip(expected, found, strict=True), 1):
        difference = abs(one[1] - other[1])
        largest = max(largest, difference)
        if difference > TOLERANCE:
            others.append((number, one[1], other[1]))
        elif one[0] != other[0]:
            ties.append((number, one[1], other[1]))
    return Comparison(name, largest, ties, others)


def describe(comparison: Comparison) -> str:
    """Writes a comparison for people."""
    name, largest, ties, others = comparison
    lines = [
        f"  {name}: {len(ties) + len(others)} lines differ, scores by at most "
        f"{largest:.1e}"
    ]
    for kind, found in (("scores as good as equal", ties), ("DIFFERENT", others)):
        lines += [
            f"    line {number:,}: scores {one:.6f} and {other:.6f}, {kind}"
            for number, one, other in found
        ]
    return "\n".join(lines)


def _parse(argv: Sequence[str] | None) -> Namespace:
    parser = cli.ArgumentParser(
        "Shows that a translation depends on its sentence alone."
    )
    add = parser.add_argument
    add("--model_dir", required=True, help="folder of the model")
    add("--checkpoint", default="best", help="see t2t_repro.translate")
    add("--input_file", required=True, help="lines to translate")
    add("--saved_model", help="a version of the exported model, too")
    add(
        "--batch_sizes",
        type=several(cli.at_least(1)),
        default="1,7,32,128",
        help="sentences at once, with commas between",
    )
    args: Namespace = parser.parse_args(argv)
    return args


if __name__ == "__main__":
    cli.run(main)
