"""Problems of parsing the Wall Street Journal (paper section 6.3)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from t2t_repro.problems.files import file_of_split, hash_of_files
from t2t_repro.problems.problem import Problem, check_split
from t2t_repro.problems.treebank import iterate_texts, iterate_trees
from t2t_repro.problems.trees import TREES
from t2t_repro.system.compression import SUFFIXES
from t2t_repro.system.errors import UserError

PARSING = WSJ_ONLY, SEMI_SUPERVISED = "parse_wsj", "parse_wsj_semi"

# The usual division of the Penn Treebank's sections, which the paper follows. The
# training sections contain about 40,000 sentences.
_SECTIONS = {
    "train": [f"{number:02}" for number in range(2, 22)],
    "val": ["22"],
    "test": ["23"],
}
_MRG = re.compile(r".*\.mrg(\.gz)?", re.IGNORECASE)
_SEMI = re.compile(r"semi.*\.trees(\.gz)?")


class ParseWsj(Problem):
    """Sentences with their linearised constituency trees.

    The data directory has one of two layouts; the first takes precedence:

    * `train.trees`, `val.trees` and `test.trees`, each plain or compressed (`.gz`);
    * the treebank's own: folders `02` to `23`, one per section, of files `*.mrg` or
      `*.mrg.gz`, possibly in a sub-folder `wsj`.

    Trees are cleaned as described in treebank.py. The semi-supervised problem also
    trains on automatic parses in `semi*.trees` (the paper: 17 million sentences).
    """

    source_lang = "en"
    target_lang = TREES

    def __init__(self, name: str, data_dir: str | None) -> None:
        """Detects the layout of `data_dir` without reading any tree.

        Args:
            name: One of `PARSING`.
            data_dir: Folder of the trees.

        Raises:
            UserError: The folder is missing or has neither layout.
        """
        self.name = name
        if data_dir is None or not Path(data_dir).is_dir():
            raise UserError(
                f"problem {name} needs data_dir, a folder with train.trees, "
                "val.trees and test.trees or with the treebank's sections"
                + (f"; {data_dir} is not a folder" if data_dir is not None else "")
            )
        super().__init__(data_dir)
        self._folder = Path(data_dir)
        self._treebank = self._find_treebank()
        # Number of trees of each split that was read to the end.
        self._trees: dict[str, int] = {}

    def pairs(self, split: str) -> Iterator[tuple[str, str]]:
        """Yields (words, tags) of each tree (see trees.py), in the order of the files.

        Raises UserError if a file is missing or a tree is malformed.
        """
        trees = 0
        for path in self._files(split):
            for pair in iterate_trees(path):
                trees += 1
                yield pair
        self._trees[split] = trees

    def description(self, split: str) -> str:
        """Returns the names of a split's files and their number of trees."""
        files = self._files(split)
        trees = self._trees.get(split)
        if trees is None:
            trees = sum(1 for path in files for _ in iterate_texts(path))
        named = ", ".join(path.name for path in files)
        if self._treebank is not None:
            first, last = _SECTIONS[split][0], _SECTIONS[split][-1]
            named = f"section {first}" if first == last else f"sections {first}-{last}"
            named += "".join(f", {path.name}" for path in self._semi(split))
        return f"{named}, {trees:,} trees"

    def fingerprint(self) -> str:
        """Returns a hash of the training files' bytes."""
        return f"{self.name}:{hash_of_files(self._files('train'))}"

    def _find_treebank(self) -> Path | None:
        """Returns the folder of the sections, or None for the plain layout."""
        if any(
            (self._folder / f"train.trees{end}").exists() for end in ("", *SUFFIXES)
        ):
            return None
        for folder in (self._folder, self._folder / "wsj"):
            if any((folder / name).is_dir() for name in chain(*_SECTIONS.values())):
                return folder
        raise UserError(
            f"data_dir {self._folder} holds neither train.trees, also compressed, nor "
            "the treebank's sections (folders 02 to 23 of *.mrg files, possibly in "
            "wsj/)"
        )

    def _files(self, split: str) -> list[Path]:
        """Returns the files of a split; UserError if one is missing."""
        check_split(split)
        if self._treebank is None:
            files = [file_of_split(self._folder / f"{split}.trees", split)]
        else:
            files = [path for name in _SECTIONS[split] for path in self._section(name)]
        return files + self._semi(split)

    def _section(self, name: str) -> list[Path]:
        """Returns the files of a section, sorted by name."""
        assert self._treebank is not None
        folder = self._treebank / name
        paths = sorted(p for p in folder.glob("*") if _MRG.fullmatch(p.name))
        if not paths:
            raise UserError(
                f"{folder} holds no *.mrg file; {self.name} needs sections 02 to 23"
            )
        return paths

    def _semi(self, split: str) -> list[Path]:
        """Returns the files of automatic parses to train on."""
        if self.name != SEMI_SUPERVISED or split != "train":
            return []
        paths = sorted(p for p in self._folder.iterdir() if _SEMI.fullmatch(p.name))
        if not paths:
            raise UserError(
                f"problem {self.name}: {self._folder} holds no semi*.trees (or .gz) "
                f"file of automatic parses; without one, use {WSJ_ONLY}"
            )
        return paths
