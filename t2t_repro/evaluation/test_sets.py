"""What systems are compared on, and what each makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from t2t_repro.problems.problem import Problem
from t2t_repro.problems.trees import TREES
from t2t_repro.system.atomic_file import new_text_file, read_lines
from t2t_repro.system.errors import UserError


class TestSet(NamedTuple):
    """Sentences and what their translations are compared with.

    Attributes:
        sources: None where only finished translations can be scored.
        references: one or several, each as long.
        target_lang: None where it is not known.
        description: where they come from, and how many they are.
    """

    sources: list[str] | None
    references: list[list[str]]
    target_lang: str | None
    description: str

    @property
    def is_trees(self) -> bool:
        """Whether it is a parser that they are for."""
        return self.target_lang == TREES

    def pairs(self) -> list[tuple[str, str]]:
        """Returns each source with its first reference."""
        return list(zip(self.sources or (), self.references[0], strict=True))


def of_split(problem: Problem, split: str) -> TestSet:
    """Returns a split of a problem."""
    pairs = list(problem.pairs(split))
    sources, references = ([pair[side] for pair in pairs] for side in (0, 1))
    description = problem.description(split)
    return TestSet(sources, [references], problem.target_lang, description)


def of_files(
    source_file: str | None, reference_files: Sequence[str], target_lang: str | None
) -> TestSet:
    """Reads files of one sentence a line; UserError unless they are equally long."""
    names = [*filter(None, [source_file]), *reference_files]
    texts = [read_lines(name) for name in names]
    for name, lines in zip(names, texts, strict=True):
        _require_as_long(name, lines, names[0], texts[0])
    sources = texts.pop(0) if source_file else None
    description = f"{', '.join(reference_files)}, {len(texts[0]):,} lines"
    return TestSet(sources, texts, target_lang, description)


def finished(path: str, test_set: TestSet) -> list[str]:
    """Reads translations of a test set, a line a sentence; UserError if too few."""
    lines = read_lines(path)
    _require_as_long(path, lines, test_set.description, test_set.references[0])
    return lines


def write_for_comet(
    folder: Path, test_set: TestSet, translations: Sequence[str]
) -> str:
    """Writes the three files that COMET reads, and returns its command.

    That program (Rei et al. 2020) and its models are no part of this package.
    """
    assert test_set.sources is not None
    folder.mkdir(parents=True, exist_ok=True)
    command = "comet-score"
    for flag, name, lines in (
        ("-s", "source.txt", test_set.sources),
        ("-t", "translation.txt", translations),
        ("-r", "reference.txt", test_set.references[0]),
    ):
        with new_text_file(folder / name) as file:
            file.writelines(f"{line}\n" for line in lines)
        command += f" {flag} {folder / name}"
    return command


def _require_as_long(
    name: str, lines: Sequence[str], other: str, others: Sequence[str]
) -> None:
    if len(lines) != len(others):
        raise UserError(
            f"{name} has {len(lines):,} lines, {other} {len(others):,}; both must be "
            "of the same sentences, one a line"
        )
