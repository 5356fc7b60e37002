"""The user's own parallel text: `train.en`, `train.de`, `val.*` and `test.*`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from t2t_repro.problems.problem import SPLITS, Problem
from t2t_repro.system.errors import UserError
from t2t_repro.system.text_files import iterate_lines, iterate_pairs

# The direction of the paper's main experiment, for a folder with these two alone.
_DEFAULT_DIRECTION = ("en", "de")


class FilesProblem(Problem):
    """Sentence pairs in plain text files that agree line by line.

    A split is two files `SPLIT.LANGUAGE`, each plain or compressed (`.gz`).

    Attributes:
        data_dir: the folder that holds the files.
    """

    name = "files"

    def __init__(
        self, data_dir: str | None, source_lang: str | None, target_lang: str | None
    ) -> None:
        """Finds out the languages; reads no file.

        Args:
            data_dir: the folder that holds the files.
            source_lang: ending of the files to translate from. The direction may be
                left out only where the training files are `train.en` and `train.de`
                alone (then English to German), one language only where there are
                two training files.
            target_lang: ending of the files to translate into.

        Raises:
            UserError: no folder is given or it does not exist, or the languages are
                the same, malformed, or cannot be told from the files.
        """
        if data_dir is None:
            raise UserError(
                "--problem files needs --data_dir, the folder with train.*, val.* and "
                "test.* files."
            )
        self.data_dir = Path(data_dir)
        if not self.data_dir.is_dir():
            raise UserError(f"--data_dir {data_dir} is not an existing folder.")
        self.source_lang, self.target_lang = self._languages(source_lang, target_lang)
        # Of the splits that were read to their end.
        self._lines: dict[str, int] = {}

    def pairs(self, split: str) -> Iterator[tuple[str, str]]:
        """Yields (source, target) line by line, in the files' order.

        Args:
            split: "train", "val" or "test".

        Yields:
            The line of each file, without its line end.

        Raises:
            UserError: a file of the split is missing, is not UTF-8 text, or has
                fewer lines than the other.
        """
        lines = 0
        for pair in iterate_pairs(*self._paths(split)):
            lines += 1
            yield pair
        self._lines[split] = lines

    def description(self, split: str) -> str:
        """Names the two files of a split and their number of lines.

        Args:
            split: "train", "val" or "test".

        Raises:
            UserError: as `pairs`.
        """
        source, target = self._paths(split)
        lines = self._lines.get(split) or sum(1 for _ in iterate_lines(source))
        return f"{source.name} and {target.name}, {lines:,} lines"

    def fingerprint(self) -> str:
        """Returns a hash of the languages and of the training files' bytes.

        Raises:
            UserError: a training file is missing.
        """
        digest = hashlib.sha256(f"{self.source_lang} {self.target_lang}".encode())
        for path in self._paths("train"):
            with open(path, "rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        return f"files:{self.source_lang}-{self.target_lang}:{digest.hexdigest()}"

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
                f"{self.data_dir} holds {listed}."
            )
        if source_lang == target_lang:
            raise UserError(
                f"--source_lang and --target_lang are both {source_lang}; a problem "
                "translates between two languages."
            )
        return source_lang, target_lang

    def _found_languages(self, split: str) -> list[str]:
        """Returns the languages that the folder has a file for, sorted."""
        files = (p.name.removesuffix(".gz") for p in self.data_dir.iterdir())
        pattern = re.compile(re.escape(split) + r"\.([A-Za-z0-9_-]+)")
        return sorted(
            {match[1] for name in files if (match := pattern.fullmatch(name))}
        )

    def _paths(self, split: str) -> tuple[Path, Path]:
        """Returns the source and the target file of a split, which both exist."""
        if split not in SPLITS:
            raise UserError(f"split {split!r}: it must be one of {', '.join(SPLITS)}.")
        return self._path(split, self.source_lang), self._path(split, self.target_lang)

    def _path(self, split: str, lang: str) -> Path:
        """Returns the file of one side of a split, plain or compressed."""
        plain = self.data_dir / f"{split}.{lang}"
        compressed = self.data_dir / f"{split}.{lang}.gz"
        if plain.exists() and compressed.exists():
            raise UserError(f"{plain} and {compressed} both exist; remove one of them.")
        for path in (plain, compressed):
            if path.is_dir():
                raise UserError(f"{path} is a directory; a text file is needed here.")
            if path.exists():
                return path
        listed = ", ".join(f"{split}.{found}" for found in self._found_languages(split))
        raise UserError(
            f"{plain} does not exist (nor {compressed.name}); the {split} split needs "
            f"it. Found: {listed or f'no {split}.* file'}."
        )


def _other(found: list[str], lang: str | None) -> str | None:
    """Returns which of two languages is not `lang`, or None if `lang` is neither."""
    return next((f for f in found if f != lang), None) if lang in found else None
