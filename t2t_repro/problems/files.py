"""The user's own parallel text: `train.en`, `train.de`, `val.*` and `test.*`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from t2t_repro.problems.problem import Problem, check_split
from t2t_repro.system.atomic_file import iterate_lines, iterate_pairs
from t2t_repro.system.errors import UserError

# The direction of the paper's main experiment, for a folder with these two alone.
_DEFAULT_DIRECTION = ("en", "de")


class FilesProblem(Problem):
    """Sentence pairs in plain text files that agree line by line.

    A split is two files `SPLIT.LANGUAGE`, each plain or compressed (`.gz`).
    """

    name = "files"

    def __init__(
        self, data_dir: str | None, source_lang: str | None, target_lang: str | None
    ) -> None:
        """Finds out the languages, the files' endings; reads no file.

        Both may be left out where the training files are `train.en` and `train.de`
        alone (English to German), one where there are two training files. A missing
        folder, or languages that are the same, malformed, or not to be told from the
        files, are a UserError.
        """
        if data_dir is None:
            raise UserError(
                "--problem files needs --data_dir, the folder with train.*, val.* and "
                "test.* files."
            )
        super().__init__(data_dir)
        self._folder = Path(data_dir)
        if not self._folder.is_dir():
            raise UserError(f"--data_dir {data_dir} is not an existing folder.")
        self.source_lang, self.target_lang = self._languages(source_lang, target_lang)
        # Of the splits that were read to their end.
        self._lines: dict[str, int] = {}

    def pairs(self, split: str) -> Iterator[tuple[str, str]]:
        """Yields (source, target) line by line, without line ends.

        A file that is missing, not UTF-8, or shorter than the other is a UserError.
        """
        lines = 0
        for pair in iterate_pairs(*self._paths(split)):
            lines += 1
            yield pair
        self._lines[split] = lines

    def description(self, split: str) -> str:
        """Names the two files of a split and their number of lines."""
        source, target = self._paths(split)
        lines = self._lines.get(split) or sum(1 for _ in iterate_lines(source))
        return f"{source.name} and {target.name}, {lines:,} lines"

    def fingerprint(self) -> str:
        """Returns a hash of the languages and of the training files' bytes."""
        languages = f"{self.source_lang} {self.target_lang}"
        digest = hash_of_files(self._paths("train"), languages)
        return f"files:{self.source_lang}-{self.target_lang}:{digest}"

    def _languages(
        self, source_lang: str | None, target_lang: str | None
    ) -> tuple[str, str]:
        """Returns both languages: as given, or as the training files tell them."""
        for flag, lang in (
            ("--source_lang", source_lang),
            ("--target_lang", target_lang),
        ):
            if lang is not None and not re.fullmatch(r"[A-Za-z0-9_-]+", lang):
                raise UserError(
                    f"{flag} {lang!r}: use a language code such as en, the ending of "
                    "the files."
                )
        found = self._found_languages("train")
        if source_lang is None and target_lang is None:
            if found == sorted(_DEFAULT_DIRECTION):
                return _DEFAULT_DIRECTION
        elif len(found) == 2:
            source_lang = source_lang or _other(found, target_lang)
            target_lang = target_lang or _other(found, source_lang)
        if source_lang is None or target_lang is None:
            listed = ", ".join(f"train.{lang}" for lang in found) or "no train.* file"
            raise UserError(
                "--problem files needs --source_lang and --target_lang: "
                f"{self._folder} holds {listed}."
            )
        if source_lang == target_lang:
            raise UserError(
                f"--source_lang and --target_lang are both {source_lang}; a problem "
                "translates between two languages."
            )
        return source_lang, target_lang

    def _found_languages(self, split: str) -> list[str]:
        """Returns the languages that the folder has a file for, sorted."""
        files = (p.name.removesuffix(".gz") for p in self._folder.iterdir())
        pattern = re.compile(re.escape(split) + r"\.([A-Za-z0-9_-]+)")
        return sorted(
            {match[1] for name in files if (match := pattern.fullmatch(name))}
        )

    def _paths(self, split: str) -> tuple[Path, Path]:
        """Returns the source and the target file of a split, which both exist."""
        check_split(split)
        return self._path(split, self.source_lang), self._path(split, self.target_lang)

    def _path(self, split: str, lang: str) -> Path:
        """Returns the file of one side of a split, plain or compressed."""
        listed = ", ".join(f"{split}.{found}" for found in self._found_languages(split))
        there = f" Found: {listed or f'no {split}.* file'}."
        return file_of_split(self._folder / f"{split}.{lang}", split, there)


def file_of_split(plain: Path, split: str, there: str = "") -> Path:
    """Returns a split's file or `FILE.gz`; UserError if none, both, or a folder.

    `there` ends the message where there is none.
    """
    found = [path for path in (plain, Path(f"{plain}.gz")) if path.exists()]
    if len(found) == 2:
        raise UserError(f"{plain} and {plain}.gz both exist; remove one of them.")
    if not found:
        raise UserError(
            f"{plain} does not exist (nor {plain.name}.gz); the {split} split needs it."
            f"{there}"
        )
    if found[0].is_dir():
        raise UserError(f"{found[0]} is a directory; a text file is needed here.")
    return found[0]


def hash_of_files(paths: Iterable[Path], text: str = "") -> str:
    """Returns the SHA-256 of a text and of files in their order, hexadecimal."""
    digest = hashlib.sha256(text.encode())
    for path in paths:
        with open(path, "rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _other(found: list[str], lang: str | None) -> str | None:
    """Returns which of two languages is not `lang`, or None if `lang` is neither."""
    return next((f for f in found if f != lang), None) if lang in found else None
