"""Several corpora with weights, written as `general:1,domain:3`."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from t2t_repro.problems.files import FilesProblem
from t2t_repro.problems.problem import Problem
from t2t_repro.system.errors import UserError

MOST_WEIGHT = 1000


@dataclass(frozen=True)
class Corpus:
    """One of several training corpora.

    Attributes:
        name: Folder of the corpus, as the user wrote it.
        problem: The files in the folder.
        weight: Share of the training steps, relative to the other weights.
    """

    name: str
    problem: Problem
    weight: int

    @property
    def folder(self) -> Path:
        """Folder of the files and of the encoded pairs."""
        return Path(self.name)

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of the training text."""
        return self.problem.fingerprint()


class JointCorpora(Problem):
    """Texts of several corpora, one after the other.

    Args:
        corpora: At least one corpus; all have the same languages.
    """

    def __init__(self, corpora: Sequence[Corpus]) -> None:
        super().__init__()
        self._corpora = corpora
        last = corpora[-1].problem
        self.source_lang, self.target_lang = last.source_lang, last.target_lang
        texts = "\n".join(corpus.fingerprint for corpus in corpora)
        self._digest = hashlib.sha256(texts.encode()).hexdigest()
        self.name = f"corpora-{self._digest[:12]}"

    def pairs(self, split: str) -> Iterator[tuple[str, str]]:
        """Yields the pairs of all corpora."""
        for corpus in self._corpora:
            yield from corpus.problem.pairs(split)

    def fingerprint(self) -> str:
        """Returns a string that identifies the training texts and their weights."""
        weights = ":".join(str(corpus.weight) for corpus in self._corpora)
        return f"corpora:{self._digest}:{weights}"


def parse_corpora(
    text: str, problem: str, source_lang: str | None, target_lang: str | None
) -> tuple[Corpus, ...]:
    """Parses a list of folders with weights.

    Args:
        text: A folder, or `FOLDER:WEIGHT,FOLDER:WEIGHT`.
        problem: Name of the problem, which must be `files` for several corpora.
        source_lang: Source language; None if the file names determine it.
        target_lang: Target language; see `source_lang`.

    Returns:
        The corpora; none if the text is a single folder.

    Raises:
        UserError: A weight or folder is invalid, a folder is given twice, or the
            corpora have different languages.
    """
    if Path(text).exists() or not ("," in text and ":" in text):
        return ()
    where = f"data_dir {text}"
    if problem != FilesProblem.name:
        raise UserError(f"{where}: several corpora need --problem files, not {problem}")
    corpora: list[Corpus] = []
    for part in text.split(","):
        folder, _, weight = part.strip().rpartition(":")
        is_number = weight.isascii() and weight.isdigit() and len(weight) < 5
        if not folder or not is_number or not 1 <= int(weight) <= MOST_WEIGHT:
            raise UserError(
                f"{where}: {part!r} must be FOLDER:WEIGHT, where the weight is a whole "
                f"number from 1 to {MOST_WEIGHT:,}"
            )
        if any(Path(folder).resolve() == c.folder.resolve() for c in corpora):
            raise UserError(f"{where}: the folder {folder} is given twice")
        files = FilesProblem(folder, source_lang, target_lang)
        corpora.append(Corpus(folder, files, int(weight)))
        first, this = (
            f"{corpus.problem.source_lang}-{corpus.problem.target_lang}"
            for corpus in (corpora[0], corpora[-1])
        )
        if first != this:
            raise UserError(
                f"{where}: {corpora[0].name} is {first}, but {folder} is {this}; use "
                "corpora of the same languages, or give --source_lang and --target_lang"
            )
    return tuple(corpora)
