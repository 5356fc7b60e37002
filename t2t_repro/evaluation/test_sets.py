"""Test sets from problems and files, and translations of them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from t2t_repro.evaluation.references import require_text
from t2t_repro.formats.pairs import find_format, iterate_side
from t2t_repro.problems.problem import Problem
from t2t_repro.problems.trees import TREES
from t2t_repro.system.atomic_file import new_text_file, read_lines
from t2t_repro.system.errors import UserError, format_count


class TestSet(NamedTuple):
    """Sentences with reference translations.

    Attributes:
        sources: Source sentences; None if only existing translations can be scored.
        references: One or several references of each sentence.
        target_lang: Language code, None if unknown.
        description: Origin and number of lines.
    """

    sources: list[str] | None
    references: list[list[str]]
    target_lang: str | None
    description: str

    @property
    def is_trees(self) -> bool:
        """Whether the references are linearised trees."""
        return self.target_lang == TREES

    def pairs(self) -> list[tuple[str, str]]:
        """Returns pairs of source and first reference."""
        return list(zip(self.sources or (), self.references[0], strict=True))


def load_split(problem: Problem, split: str) -> TestSet:
    """Returns the test set of a problem's split."""
    pairs = list(problem.pairs(split))
    sources, references = ([pair[side] for pair in pairs] for side in (0, 1))
    description = problem.description(split)
    return TestSet(sources, [references], problem.target_lang, description)


def read_files(
    source_file: str | None,
    reference_files: Sequence[str],
    languages: tuple[str | None, str | None],
    reference_names: Sequence[str | None] = (None,),
) -> TestSet:
    """Reads a test set from text files, or from files of pairs such as WMT's.

    Args:
        source_file: File of the sources; None if only translations can be scored.
        reference_files: Files of alternative references.
        languages: Source and target language, None if unknown.
        reference_names: References to read from each file with named ones; None is the
            first one of the file.

    Raises:
        UserError: The numbers of lines differ, or all lines of a file are blank.
    """
    sides = [(source_file, 0, reference_names[0])] if source_file else []
    for file in reference_files:
        names = reference_names if find_format(file) else (None,)
        sides += [(file, 1, name) for name in names]
    texts: list[list[str]] = []
    descriptions: list[str] = []
    for file, side, name in sides:
        summaries: list[str] = []
        report = summaries.append
        lines = [*iterate_side(file, side, languages, reference=name, report=report)]
        texts.append(lines)
        _require_same_length(file, lines, sides[0][0], texts[0])
        require_text(lines, file)
        if side == 1:
            descriptions += summaries or [file]
    sources = texts.pop(0) if source_file else None
    description = f"{', '.join(descriptions)}, {format_count(len(texts[0]), 'line')}"
    return TestSet(sources, texts, languages[1], description)


def read_translations(path: str, test_set: TestSet) -> list[str]:
    """Reads translations of a test set, one per line.

    Raises UserError if the number of lines differs from the test set.
    """
    lines = read_lines(path)
    _require_same_length(path, lines, test_set.description, test_set.references[0])
    return lines


def write_for_comet(
    folder: Path, test_set: TestSet, translations: Sequence[str]
) -> str:
    """Writes the three input files of COMET and returns the command to run it.

    COMET (Rei et al. 2020) must be installed separately.
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
        command += f" {flag} {shlex.quote(str(folder / name))}"
    return command


def _require_same_length(
    name: str, lines: Sequence[str], other: str, others: Sequence[str]
) -> None:
    if len(lines) != len(others):
        raise UserError(
            f"{name} has {format_count(len(lines), 'line')}, expected {len(others):,} "
            f"({other}); both must contain the same sentences, one per line"
        )
