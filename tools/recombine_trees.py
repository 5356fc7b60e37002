"""Makes new trees of a treebank's own: constituents of one label take turns.

    python tools/recombine_trees.py --data_dir FOLDER --trees 60000

reads the training trees of a parsing problem and writes FOLDER/semi.trees, so that
`--problem parse_wsj_semi` learns from both. A few thousand trees are soon known by
heart, before a model has learned which word it is at; recombined ones never repeat.

Each tree is one of the treebank's, drawn at random, in which every constituent below
the top is replaced, with some probability, by another of the same label under the same
label, drawn from all of the treebank as often as it stands there. What is longer than
`--most_words` is drawn again.

Source: Shi, Livescu and Gimpel 2021, "Substructure Substitution: Structured Data
Augmentation for NLP" (arXiv:2101.00411).
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from tqdm import tqdm

from t2t_repro import problems
from t2t_repro.command_line import cli
from t2t_repro.problems.parse_wsj import WSJ_ONLY
from t2t_repro.problems.trees import Kind, Mark, read_tags, spell
from t2t_repro.system.atomic_file import new_text_file

Piece = tuple[Mark, str]
"""A mark, and the word of one that stands for a word."""

_TRIES = 100


class Treebank:
    """Trees, given as words and tags, and their constituents by parent and label."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._trees: list[list[Piece]] = []
        self._constituents: dict[tuple[str, str], list[list[Piece]]] = defaultdict(list)
        for words, tags in pairs:
            tree = _pieces(read_tags(tags.split()), words.split())
            self._trees.append(tree)
            for begin, end, parent in _constituents(tree):
                key = (parent, tree[begin][0].label)
                self._constituents[key].append(tree[begin:end])

    def recombined(
        self, generator: random.Random, probability: float, most_words: int
    ) -> str:
        """Draws a tree, in brackets; replaces each constituent with some probability.

        It has at most `most_words`, where that can be had in a hundred tries.
        """
        for _ in range(_TRIES):
            tree = self._replaced(generator.choice(self._trees), generator, probability)
            words = [word for mark, word in tree if mark.kind is Kind.WORD]
            if len(words) <= most_words:
                break
        return spell([mark for mark, _ in tree], words)

    def _replaced(
        self, tree: Sequence[Piece], generator: random.Random, probability: float
    ) -> list[Piece]:
        """Replaces constituents, the outer ones first; what is put in stays."""
        ends = {begin: (end, parent) for begin, end, parent in _constituents(tree)}
        made: list[Piece] = []
        place = 0
        while place < len(tree):
            end, parent = ends.get(place, (0, ""))
            if parent and generator.random() < probability:
                label = tree[place][0].label
                made += generator.choice(self._constituents[parent, label])
                place = end
            else:
                made.append(tree[place])
                place += 1
        return made


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags and writes the trees."""
    parser = cli.ArgumentParser("Makes new trees of the training trees of a treebank.")
    add, count = parser.add_argument, cli.at_least(1)
    add("--data_dir", required=True, help="folder of the trees")
    add("--trees", type=count, default=60_000, help="how many to make")
    probability = "to replace a constituent"
    add("--probability", type=cli.share, default=0.2, help=probability)
    add("--most_words", type=count, default=60, help="of a tree")
    seed = "another makes other trees"
    add("--seed", type=cli.at_least(0), default=1, help=seed)
    args = parser.parse_args(argv)
    treebank = Treebank(problems.create(WSJ_ONLY, args.data_dir).pairs("train"))
    path = Path(args.data_dir) / "semi.trees"
    generator = random.Random(args.seed)
    with new_text_file(path) as file:
        for _ in tqdm(range(args.trees), unit=" trees", disable=None):
            tree = treebank.recombined(generator, args.probability, args.most_words)
            file.write(f"{tree}\n")
    cli.print_result(
        f"{path} holds {args.trees:,} trees",
        {"file": str(path), "trees": args.trees},
        args.json,
    )


def _pieces(marks: Sequence[Mark], words: Sequence[str]) -> list[Piece]:
    """Joins marks with their words."""
    remaining = iter(words)
    return [(m, next(remaining) if m.kind is Kind.WORD else "") for m in marks]


def _constituents(tree: Sequence[Piece]) -> list[tuple[int, int, str]]:
    """Finds the constituents inside of others: first piece, end, label around it."""
    found = []
    open_: list[tuple[int, str]] = []
    for place, (mark, _) in enumerate(tree):
        if mark.kind is Kind.BEGIN:
            open_.append((place, mark.label))
        elif mark.kind is Kind.END:
            begin, _ = open_.pop()
            if open_:
                found.append((begin, place + 1, open_[-1][1]))
    return found


if __name__ == "__main__":
    cli.run(main)
