"""What a model learns from: sentence pairs, in three splits."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator

from t2t_repro.system.errors import UserError

SPLITS = ("train", "val", "test")


class Problem(ABC):
    """A source of sentence pairs in the splits "train", "val" and "test".

    A problem knows text only: subwords, batches and shapes are made from it later.

    A subclass of your own, in any module that Python finds, is a problem that every
    command knows as `--problem MODULE:CLASS`. It needs its two languages and `pairs`.

    Attributes:
        name: what `--problem` calls it; a class of your own is given it.
        source_lang: language code of the first half of each pair, e.g. "en".
        target_lang: language code of the second half of each pair, e.g. "de"; "trees"
            if it is a linearised tree (see trees.py), which is scored as such.
        data_dir: what `--data_dir` says; None where nothing was said.
    """

    name: str
    source_lang: str
    target_lang: str

    def __init__(self, data_dir: str | None = None) -> None:
        self.data_dir = data_dir

    @abstractmethod
    def pairs(self, split: str) -> Iterator[tuple[str, str]]:
        """Yields (source, target) in an order that never changes.

        A `split` that is none of `SPLITS`, or cannot be read, is a UserError.
        """

    def description(self, split: str) -> str:
        """Returns what a split is in a few words, e.g. its name and number of lines."""
        return f"{self.name}, {split}"

    def fingerprint(self) -> str:
        """Identifies the training data: equal data, equal string, and the reverse.

        Every command that trains asks for it. This one reads all the pairs; replace it
        where that takes long.
        """
        languages = f"{self.source_lang} {self.target_lang}"
        return hash_of_pairs(self.pairs("train"), languages)


def check_split(split: str) -> None:
    """Raises UserError if a split is none of `SPLITS`."""
    if split not in SPLITS:
        raise UserError(f"split {split!r}: it must be one of {', '.join(SPLITS)}.")


def hash_of_pairs(pairs: Iterable[tuple[str, str]], text: str = "") -> str:
    """Returns the SHA-256 of a text and of pairs in their order, hexadecimal."""
    digest = hashlib.sha256(text.encode())
    for source, target in pairs:
        digest.update(f"{source}\n{target}\n".encode())
    return digest.hexdigest()
