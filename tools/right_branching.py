"""Scores the right-branching baseline of a parsing problem, as EVALB does.

    python tools/right_branching.py --data_dir FOLDER [--split test]

A useful parser has a higher score. Each sentence is an `S`, in which each word except
the last begins a constituent that ends before the final punctuation. Its label is the
most frequent label of constituents of at least two words that begin with the same part
of speech in the training trees, or `NP` for other parts of speech. The parts of speech
are those of the treebank, so the tagging score is always 100.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from flags import REQUIRED, choice, parser

from t2t_repro import problems
from t2t_repro.command_line import cli
from t2t_repro.evaluation.parseval import COLLINS, parseval
from t2t_repro.problems.parse_wsj import PARSING
from t2t_repro.problems.problem import SPLITS
from t2t_repro.problems.trees import Kind, Mark, parts_of_speech, read_tags, spell
from t2t_repro.system.atomic_file import new_text_file

_UNKNOWN = "NP"


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, counts labels and prints the score of a split."""
    args = parser(
        __doc__,
        ("data_dir", cli.path, REQUIRED, "folder of the treebank"),
        ("problem", choice(PARSING), "parse_wsj", "parsing problem"),
        ("split", choice(SPLITS), "test", "split to score: train, val or test"),
        ("output_file", cli.path, None, "output file for the baseline's trees"),
    ).parse_args(argv)
    problem = problems.create(args.problem, args.data_dir)
    labels = most_frequent_labels(tags for _, tags in problem.pairs("train"))
    gold, baseline = [], []
    for words, tags in problem.pairs(args.split):
        marks = read_tags(tags.split())
        gold.append(spell(marks, words.split()))
        branches = right_branching(parts_of_speech(marks), labels)
        baseline.append(spell(branches, words.split()))
    report = parseval(gold, baseline)
    if args.output_file:
        with new_text_file(args.output_file) as file:
            file.writelines(f"{tree}\n" for tree in baseline)
    values = report.to_dict() | {"split": args.split, "labels": labels}
    cli.print_result(report.text(), values, args.json)


def most_frequent_labels(trees: Iterable[str]) -> dict[str, str]:
    """Returns the most frequent label of constituents by their first part of speech.

    Counts constituents of at least two words. Ties are broken alphabetically.

    Args:
        trees: Tags of each tree.
    """
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for tags in trees:
        speech: list[str] = []
        starts: list[int] = []
        for kind, label in read_tags(tags.split()):
            if kind is Kind.WORD:
                speech.append(label)
            elif kind is Kind.BEGIN:
                starts.append(len(speech))
            elif len(speech) - (first := starts.pop()) >= 2:
                counts[speech[first]][label] += 1
    return {
        tag: min(labels, key=lambda label: (-labels[label], label))
        for tag, labels in sorted(counts.items())
    }


def right_branching(speech: Sequence[str], labels: dict[str, str]) -> list[Mark]:
    """Returns the baseline's tree for the parts of speech of a sentence."""
    end = len(speech)
    while end > 1 and speech[end - 1] in COLLINS.deleted:
        end -= 1
    marks = [Mark(Kind.BEGIN, "S")]
    open_ = []
    for position, tag in enumerate(speech[:end]):
        if 0 < position < end - 1:
            open_.append(labels.get(tag, _UNKNOWN))
            marks.append(Mark(Kind.BEGIN, open_[-1]))
        marks.append(Mark(Kind.WORD, tag))
    marks += [Mark(Kind.END, label) for label in reversed(open_)]
    marks += [Mark(Kind.WORD, tag) for tag in speech[end:]]
    return [*marks, Mark(Kind.END, "S")]


if __name__ == "__main__":
    cli.run(main)
