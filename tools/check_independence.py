"""Checks that translations do not depend on the composition of batches.

    python tools/check_independence.py --model_dir MODEL --input_file TEXT
        [--saved_model EXPORTED/1]

Translates a text line by line and in several batch sizes, in order and shuffled, and
optionally with a SavedModel. All scores must agree within 1e-4. Translations must be
equal, except for at most 2 in 1,000 lines with equal scores, which are listed.
Otherwise, the exit status is 1.
"""

import random
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from flags import REQUIRED, parser, several

from t2t_repro.command_line import cli
from t2t_repro.system.atomic_file import read_lines

TOLERANCE = 1e-4
MOST_TIES = 2e-3


class Comparison(NamedTuple):
    """Comparison of a batching with translation line by line.

    Attributes:
        name: Name of the batching.
        largest: Largest difference of scores.
        ties: Lines with different translations but equal scores within the tolerance:
            line number, starting at 1, and both scores.
        others: Lines with different scores, in the same form.
    """

    name: str
    largest: float
    ties: list[tuple[int, float, float]]
    others: list[tuple[int, float, float]]


Translations = list[tuple[str, float]]
"""Translation and score of each line."""


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, translates with all batchings and prints the differences."""
    args = parser(
        __doc__,
        ("model_dir", cli.path, REQUIRED, "model directory"),
        ("checkpoint", cli.path, "best", "see t2t_repro.translate"),
        ("input_file", cli.path, REQUIRED, "file with one sentence per line"),
        ("saved_model", str, None, "version folder of an export to check as well"),
        ("batch_sizes", several(cli.int_range(1)), "1,7,32,128", "sentences per batch"),
    ).parse_args(argv)
    lines = read_lines(args.input_file)
    cli.start_tensorflow(args.verbose)
    ways = translations(args, lines)
    _, expected = next(ways)
    comparisons = [compare(name, expected, other) for name, other in ways]
    passed = not any(
        each.others or len(each.ties) > MOST_TIES * len(lines) for each in comparisons
    )
    text = f"{len(lines):,} lines, compared with translation one by one:"
    compared = [each._asdict() for each in comparisons]
    values = {"lines": len(lines), "ways": compared, "passed": passed}
    cli.print_result("\n".join([text, *map(describe, comparisons)]), values, args.json)
    if not passed:
        sys.exit(1)


def translations(
    args: Namespace, lines: list[str]
) -> Iterator[tuple[str, Translations]]:
    """Translates with all batchings, first line by line.

    Yields:
        Name of the batching, and translations in the order of the lines.
    """
    import tensorflow as tf

    from t2t_repro.fast.parallel_batches import give_each_batch_a_core
    from t2t_repro.translation.build import build_translator
    from t2t_repro.translation.loading import load_models

    give_each_batch_a_core()
    translator = build_translator(load_models(args.model_dir, args.checkpoint))
    order = list(range(len(lines)))
    random.Random(1).shuffle(order)
    mixed = [lines[n] for n in order]

    def translate(lines: list[str], batch_size: int, window: int) -> Translations:
        results = translator.translate_lines(lines, batch_size, window)
        return [(each.text, each.score) for each in results]

    def restore_order(shuffled: Translations) -> Translations:
        return [each for _, each in sorted(zip(order, shuffled, strict=True))]

    yield "one by one", translate(lines, 1, 1)
    for size in args.batch_sizes:
        yield f"batches of {size} by length", translate(lines, size, len(lines))
        shuffled = translate(mixed, size, size)
        yield f"batches of {size}, shuffled", restore_order(shuffled)
    if args.saved_model:
        import tensorflow_text  # noqa: F401  # Registers the tokenizer's ops.

        signature = tf.saved_model.load(args.saved_model).signatures["serving_default"]
        for size in args.batch_sizes:
            served: Translations = []
            for n in range(0, len(mixed), size):
                result = signature(text=tf.constant(mixed[n : n + size]))
                texts = [text.decode() for text in result["translations"].numpy()]
                served += zip(texts, result["scores"].numpy().tolist(), strict=True)
            yield f"SavedModel, {size} shuffled", restore_order(served)


def compare(name: str, expected: Translations, other: Translations) -> Comparison:
    """Compares two lists of translations of the same lines."""
    ties, others, largest = [], [], 0.0
    for number, (one, two) in enumerate(zip(expected, other, strict=True), 1):
        difference = abs(one[1] - two[1])
        largest = max(largest, difference)
        if difference > TOLERANCE:
            others.append((number, one[1], two[1]))
        elif one[0] != two[0]:
            ties.append((number, one[1], two[1]))
    return Comparison(name, largest, ties, others)


def describe(comparison: Comparison) -> str:
    """Formats a comparison as text."""
    name, largest, ties, others = comparison
    lines = [
        f"  {name}: {len(ties) + len(others)} lines differ, scores differ by at most "
        f"{largest:.1e}"
    ]
    for kind, rows in (("equal within the tolerance", ties), ("DIFFERENT", others)):
        lines += [
            f"    line {number:,}: scores {one:.6f} and {two:.6f}, {kind}"
            for number, one, two in rows
        ]
    return "\n".join(lines)


if __name__ == "__main__":
    cli.run(main)
