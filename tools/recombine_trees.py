"""Augments a treebank by exchanging constituents with equal labels.

    python tools/recombine_trees.py --data_dir FOLDER --trees 60000

Reads the training trees of a parsing problem and writes new trees to FOLDER/semi.trees,
for training with `--problem parse_wsj_semi`. A model memorizes a few thousand trees
before it has learned to align words and tags; recombined trees rarely repeat.

Each new tree is a random tree of the treebank, in which constituents below the top are
replaced, with a given probability, by random constituents of the treebank that have the
same label and the same parent label. Trees longer than `--most_words` are drawn again.

Source: Shi, Livescu and Gimpel 2021, "Substructure Substitution: Structured Data
Augmentation for NLP" (arXiv:2101.00411).
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from flags import REQUIRED, parser
from tqdm import tqdm

from t2t_repro import problems
from t2t_repro.command_line import cli
from t2t_repro.problems.parse_wsj import WSJ_ONLY
from t2t_repro.problems.trees import Kind, Mark, read_tags, spell
from t2t_repro.system.atomic_file import new_text_file

Piece = tuple[Mark, str]
"""A mark and its word; "" for marks other than words."""

_TRIES = 100


class Treebank:
    """Trees and their constituents by parent label and label.

    Args:
        pairs: Words and tags of each tree.
    """

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._trees: list[list[Piece]] = []
        self._constituents: dict[tuple[str, str], list[list[Piece]]] = defaultdict(list)
        for words, tags in pairs:
            tree = _pieces(read_tags(tags.split()), words.split())
            self._trees.append(tree)
            for begin, end, parent in _constituents(tree):
                key = (parent, tree[begin][0].label)
                self._constituents[key].append(tree[begin:end])

    def recombine(
        self, generator: random.Random, probability: float, most_words: int
    ) -> str:
        """Draws a tree and replaces its constituents at random.

        Args:
            generator: Random generator.
            probability: Probability of replacing a constituent.
            most_words: Maximum number of words; the tree may be longer if 100 draws
                give no shorter one.

        Returns:
            Tree in bracket notation.
        """
        for _ in range(_TRIES):
            tree = self._replace(generator.choice(self._trees), generator, probability)
            words = [word for mark, word in tree if mark.kind is Kind.WORD]
            if len(words) <= most_words:
                break
        return spell([mark for mark, _ in tree], words)

    def _replace(
        self, tree: Sequence[Piece], generator: random.Random, probability: float
    ) -> list[Piece]:
        """Replaces constituents top-down; replacements are not changed further."""
        ends = {begin: (end, parent) for begin, end, parent in _constituents(tree)}
        result: list[Piece] = []
        position = 0
        while position < len(tree):
            end, parent = ends.get(position, (0, ""))
            if parent and generator.random() < probability:
                label = tree[position][0].label
                result += generator.choice(self._constituents[parent, label])
                position = end
            else:
                result.append(tree[position])
                position += 1
        return result


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags and writes the trees."""
    args = parser(
        __doc__,
        ("data_dir", cli.path, REQUIRED, "folder of the treebank"),
        ("trees", cli.int_range(1), 60_000, "number of trees to write"),
        ("probability", cli.fraction, 0.2, "probability of replacing a constituent"),
        ("most_words", cli.int_range(1), 60, "maximum words per tree"),
        ("seed", cli.int_range(0), 1, "random seed"),
    ).parse_args(argv)
    treebank = Treebank(problems.create(WSJ_ONLY, args.data_dir).pairs("train"))
    path = Path(args.data_dir) / "semi.trees"
    generator = random.Random(args.seed)
    with new_text_file(path) as file:
        for _ in tqdm(range(args.trees), unit=" trees", disable=None):
            tree = treebank.recombine(generator, args.probability, args.most_words)
            file.write(f"{tree}\n")
    text = f"wrote {args.trees:,} trees to {path}"
    cli.print_result(text, {"file": str(path), "trees": args.trees}, args.json)


def _pieces(marks: Sequence[Mark], words: Sequence[str]) -> list[Piece]:
    """Pairs each mark with its word; "" for brackets."""
    remaining = iter(words)
    return [(m, next(remaining) if m.kind is Kind.WORD else "") for m in marks]


def _constituents(tree: Sequence[Piece]) -> list[tuple[int, int, str]]:
    """Returns (begin, end, parent label) of all constituents below the top."""
    constituents = []
    open_: list[tuple[int, str]] = []
    for position, (mark, _) in enumerate(tree):
        if mark.kind is Kind.BEGIN:
            open_.append((position, mark.label))
        elif mark.kind is Kind.END:
            begin, _ = open_.pop()
            if open_:
                constituents.append((begin, position + 1, open_[-1][1]))
    return constituents


if __name__ == "__main__":
    cli.run(main)
