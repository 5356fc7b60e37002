"""Vocabulary of encoded data: given as a file, or built from the training text."""

import hashlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path

from t2t_repro.hparams import HParams
from t2t_repro.problems.problem import Problem
from t2t_repro.problems.trees import TREES
from t2t_repro.system.atomic_file import write_bytes_atomically
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.separate_tokenizer import join_vocabularies
from t2t_repro.tokenizers.tokenizer import MARIAN_SUFFIX, SEPARATE_SUFFIX, Tokenizer
from t2t_repro.tokenizers.vocabulary import (
    SUFFIXES,
    PieceOptions,
    VocabularyTooLargeError,
    build_vocabulary,
)


@dataclass(frozen=True)
class TrainingVocabulary:
    """Vocabulary that the hyper-parameters or the user choose.

    Attributes:
        hparams: Kind and size of a vocabulary that is built.
        given: Suffix and contents of an existing file; None builds a vocabulary. The
            file may be in a folder that is rebuilt, so it is read in advance.
    """

    hparams: HParams
    given: tuple[str, bytes] | None

    @classmethod
    def choose(cls, hparams: HParams, path: Path | None) -> "TrainingVocabulary":
        """Reads an existing vocabulary file, if there is one.

        Raises:
            UserError: The file is damaged or does not fit the hyper-parameters.
        """
        if path is None:
            return cls(hparams, None)
        if path.exists() and not path.is_file():
            kind = "folder" if path.is_dir() else "pipe or device"
            raise UserError(f"--vocab_file {path} is a {kind}; specify a file")
        is_shared = load_tokenizer(path).target_vocab_size is None
        # An imported model may have two vocabularies with share_vocab=true.
        if is_shared != hparams.share_vocab and path.suffix != MARIAN_SUFFIX:
            has, value = "a vocabulary for each side", "false"
            if is_shared:
                has, value = "one vocabulary for both sides", "true"
            raise UserError(
                f"--vocab_file {path} contains {has}; set share_vocab={value}"
            )
        return cls(hparams, (path.suffix, path.read_bytes()))

    @property
    def name(self) -> str:
        """Name of the vocabulary in the names of folders."""
        if self.given is not None:
            return hashlib.sha256(self.given[1]).hexdigest()[:12]
        name = f"{self.hparams.tokenizer}-{self.hparams.vocab_size}"
        sides = "" if self.hparams.share_vocab else "-separate"
        return name + self._piece_options().label + sides

    def prepare(
        self, problem: Problem, directory: Path, say: Callable[[str], None]
    ) -> Tokenizer:
        """Loads the vocabulary of a folder; builds or copies it if it is missing.

        Args:
            problem: Source of the training text.
            directory: Folder of the vocabulary.
            say: Called with each log line.

        Raises:
            UserError: The kind of vocabulary cannot be built.
        """
        kind, shared = self.hparams.tokenizer, self.hparams.share_vocab
        suffix = self.given[0] if self.given else SUFFIXES.get(kind)
        if suffix is None:
            raise UserError(
                f"hparams: the vocabulary of tokenizer={kind} cannot be built from "
                "text; use that of an imported model (--vocab_file M/vocab.marian)"
            )
        if self.given is None and not shared:
            suffix = SEPARATE_SUFFIX
        path = directory / f"vocab{suffix}"
        if path.exists():
            say(f"reusing {path}")
        elif self.given is not None:
            write_bytes_atomically(path, self.given[1])
        elif shared:
            self._build(problem, path, say)
        else:
            with tempfile.TemporaryDirectory() as folder:
                sides = []
                for side in ("source", "target"):
                    file = Path(folder, f"{side}{SUFFIXES[kind]}")
                    self._build(problem, file, say, side)
                    sides.append(load_tokenizer(file))
                write_bytes_atomically(path, join_vocabularies(*sides))
        return load_tokenizer(path)

    def _build(
        self,
        problem: Problem,
        path: Path,
        say: Callable[[str], None],
        side: str | None = None,
    ) -> None:
        """Builds the vocabulary of a side, or one that both sides share."""
        size, name = self.hparams.vocab_size, f"{side} " if side else ""
        say(f"building a {name}vocabulary of {size:,} subwords")
        columns = {"source": [0], "target": [1]}.get(side or "", [0, 1])
        tags = problem.target_lang == TREES and 1 in columns

        def build(size: int) -> None:
            pairs = problem.pairs("train")
            lines = (pair[column] for pair in pairs for column in columns)
            options = self._piece_options()
            build_vocabulary(self.hparams.tokenizer, lines, size, path, tags, options)

        try:
            build(size)
        except VocabularyTooLargeError as error:
            say(f"  {error}; using that size instead")
            build(error.largest)

    def _piece_options(self) -> PieceOptions:
        """Returns SentencePiece's options of a new vocabulary."""
        names = (field.name for field in fields(PieceOptions))
        return PieceOptions(**{name: getattr(self.hparams, name) for name in names})
