"""Problem of the user's own texts: `train.en` and `train.de`, or `train.tmx`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from t2t_repro.formats.pairs import find_format, is_reference_sgm, read_pairs
from t2t_repro.problems.problem import Problem, check_split, hash_of_pairs
from t2t_repro.system.atomic_file import is_special, iterate_lines, iterate_pairs
from t2t_repro.system.compression import SUFFIXES, strip_suffix
from t2t_repro.system.errors import UserError

# Formats whose texts are in other files as well.
_SEVERAL_FILES = (".sgm", ".xml")
_NOT_READ = (".7z", ".lz4", ".rar")  # Compressed files that must be decompressed.
_MOST_LISTED = 6


class FilesProblem(Problem):
    """Problem that reads the user's files.

    Each split has two parallel files `SPLIT.LANGUAGE` with one sentence per line, or
    files of pairs such as `SPLIT.tmx` or `SPLIT.1.tsv` in any format of
    `formats.pairs`, which are read in the order of their names. All files may be
    compressed.
    """

    name = "files"

    def __init__(
        self, data_dir: str | None, source_lang: str | None, target_lang: str | None
    ) -> None:
        """Determines the languages from the arguments and file names; reads no file.

        Args:
            data_dir: Folder of the files.
            source_lang: Extension of the source files. May be None if there are exactly
                two training files and `target_lang` is set.
            target_lang: Extension of the target files; see `source_lang`. Both may be
                None if the only training files are `train.en` and `train.de` (English
                to German).

        Raises:
            UserError: The folder is missing, or the languages are equal, malformed or
                ambiguous.
        """
        if data_dir is None:
            raise UserError(
                "problem files needs data_dir, the folder with train.*, val.* and "
                "test.* files"
            )
        super().__init__(data_dir)
        self._folder = Path(data_dir)
        if not self._folder.is_dir():
            raise UserError(f"data_dir {data_dir} is not an existing folder")
        self.source_lang, self.target_lang = self._languages(source_lang, target_lang)
        # Number of lines of each split that was read to the end.
        self._lines: dict[str, int] = {}
        # Numbers of pairs and languages of each file of pairs that was read to the end.
        self._summaries: dict[Path, str] = {}

    def pairs(self, split: str) -> Iterator[tuple[str, str]]:
        """Yields (source, target) for each line or unit, without line ends.

        Raises UserError if a file is missing, not UTF-8, shorter than the other, or not
        valid in its format.
        """
        if files := self._find_pair_files(split):
            for path in files:
                yield from self._read_pair_file(path)
            return
        lines = 0
        for pair in iterate_pairs(*self._paths(split)):
            lines += 1
            yield pair
        self._lines[split] = lines

    def has(self, split: str) -> bool:
        """Returns whether the folder has any file of a split."""
        check_split(split)
        return split == "train" or any(self._folder.glob(f"{split}.*"))

    def description(self, split: str) -> str:
        """Returns the names of a split's files and their numbers of lines or pairs."""
        if files := self._find_pair_files(split):
            for path in files:
                if path not in self._summaries:
                    for _ in self._read_pair_file(path):
                        pass
            return "; ".join(self._summaries[path] for path in files)
        source, target = self._paths(split)
        if split not in self._lines:
            self._lines[split] = sum(1 for _ in iterate_lines(source))
        return f"{source.name} and {target.name}, {self._lines[split]:,} lines"

    def count(self, split: str) -> int | None:
        """Returns the number of lines of a split that was read to the end."""
        return self._lines.get(split)

    def fingerprint(self) -> str:
        """Returns a hash of the languages and of the training files' bytes."""
        languages = f"{self.source_lang} {self.target_lang}"
        files = self._find_pair_files("train")
        if any(find_format(path) in _SEVERAL_FILES for path in files):
            digest = hash_of_pairs(self.pairs("train"), languages)
        else:
            digest = hash_of_files(files or self._paths("train"), languages)
        return f"files:{self.source_lang}-{self.target_lang}:{digest}"

    def _read_pair_file(self, path: Path) -> Iterator[tuple[str, str]]:
        """Yields the pairs of a file and keeps its summary."""

        def keep(summary: str) -> None:
            self._summaries[path] = summary

        for pair in read_pairs(path, self.source_lang, self.target_lang, report=keep):
            yield pair.source, pair.target

    def _languages(
        self, source_lang: str | None, target_lang: str | None
    ) -> tuple[str, str]:
        """Returns both languages, inferring missing ones from the training files."""
        for side, lang in {"source": source_lang, "target": target_lang}.items():
            if lang is not None and not re.fullmatch(r"[A-Za-z0-9_-]+", lang):
                raise UserError(
                    f"{side}_lang {lang!r}: use a language code such as en, which is "
                    "the ending of the files"
                )
        trained = languages = self._find_languages("train")
        if len(trained) < 2:
            # A training whose data are encoded can resume without the training files.
            languages = self._find_languages("val")
        if source_lang is None and target_lang is None:
            if languages == ["de", "en"]:
                return "en", "de"  # the paper's main experiment
        elif len(languages) == 2:
            other = dict[str | None, str](zip(languages, languages[::-1], strict=True))
            source_lang = source_lang or other.get(target_lang)
            target_lang = target_lang or other.get(source_lang)
        if source_lang is None or target_lang is None:
            raise UserError(
                "problem files needs source_lang and target_lang: "
                f"{self._folder} holds {self._list_files('train')}"
            )
        if source_lang == target_lang:
            raise UserError(
                f"source_lang and target_lang are both {source_lang}; give two "
                "different languages; to train within one language, rename the target "
                f"files, for example to train.{source_lang}2, and give target_lang "
                f"{source_lang}2"
            )
        return source_lang, target_lang

    def _find_languages(self, split: str) -> list[str]:
        """Returns the languages of the split's files in the folder, sorted."""
        files = (p.name for p in self._folder.iterdir() if not find_format(p))
        pattern = re.compile(re.escape(split) + r"\.([A-Za-z0-9_-]+)")
        matches = (pattern.fullmatch(strip_suffix(name)) for name in files)
        return sorted({match[1] for match in matches if match})

    def _find_pair_files(self, split: str) -> list[Path]:
        """Returns the files of pairs of a split, sorted by name.

        Raises UserError if there are parallel files as well.
        """
        check_split(split)
        parallel = {f"{split}.{self.source_lang}", f"{split}.{self.target_lang}"}
        paths = sorted(self._folder.glob(f"{split}.*"))
        found = [path for path in paths if strip_suffix(path.name) in parallel]
        files = [
            path
            for path in paths
            if find_format(path)
            and not is_reference_sgm(path.name)
            and path not in found
        ]
        if files and found:
            raise UserError(
                f"{self._folder} holds {files[0].name} and {found[0].name}, but the "
                f"{split} split is read from files of one kind; remove the others"
            )
        return files

    def _paths(self, split: str) -> tuple[Path, Path]:
        """Returns the source and target file of a split; UserError if missing."""
        check_split(split)
        return self._path(split, self.source_lang), self._path(split, self.target_lang)

    def _path(self, split: str, lang: str) -> Path:
        """Returns the file of one side of a split, plain or compressed."""
        hint = f"; found: {self._list_files(split)}"
        return file_of_split(self._folder / f"{split}.{lang}", split, hint)

    def _list_files(self, split: str) -> str:
        """Names the files of a split; for unsuitable names, adds a remedy."""
        usable = [f"{split}.{lang}" for lang in self._find_languages(split)]
        names = (path.name for path in self._folder.iterdir())
        others = sorted(
            name
            for name in names
            if name.startswith(f"{split}.") and strip_suffix(name) not in usable
        )
        usable += filter(find_format, others)
        others = [name for name in others if name not in usable]
        if not others:
            return ", ".join(usable) or f"no {split}.* file"
        remedy = f"rename files to {split}.LANGUAGE, such as {split}.en"
        if any(name.endswith(_NOT_READ) for name in others):
            remedy += ", and decompress them"
        more = " and others" * (len(others) > _MOST_LISTED)
        listed = ", ".join([*usable, *others[:_MOST_LISTED]])
        return f"{listed}{more}; {remedy}"


def file_of_split(plain: Path, split: str, hint: str = "") -> Path:
    """Returns the path of a split's file, plain or compressed.

    Args:
        plain: Path of the uncompressed file.
        split: Name of the split, for the error message.
        hint: End of the error message if the file does not exist.

    Raises:
        UserError: Neither or both of the plain and the compressed file exist, or the
            path is not a regular file.
    """
    names = [plain, *(Path(f"{plain}{suffix}") for suffix in SUFFIXES)]
    paths = [path for path in names if path.exists()]
    if len(paths) > 1:
        raise UserError(f"{paths[0]} and {paths[1]} both exist; remove one of them")
    if not paths:
        raise UserError(
            f"{plain} does not exist (nor with {', '.join(SUFFIXES)}); the {split} "
            f"split needs it{hint}"
        )
    if paths[0].is_dir():
        raise UserError(f"{paths[0]} is a directory, but must be a text file")
    if is_special(paths[0]):
        raise UserError(
            f"{paths[0]} is a pipe or device, but it is read several times; copy its "
            "contents to a regular file"
        )
    return paths[0]


def hash_of_files(paths: Iterable[Path], text: str = "") -> str:
    """Returns the hexadecimal SHA-256 of a text and the files, in order."""
    digest = hashlib.sha256(text.encode())
    for path in paths:
        with open(path, "rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
