"""Interface of the problems: sentence pairs in three splits."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator

from t2t_repro.system.errors import UserError

SPLITS = ("train", "val", "test")


class Problem(ABC):
    """Source of sentence pairs in the splits "train", "val" and "test".

    A problem provides text only; encoding and batching come later.

    Commands accept a custom subclass in any importable module as
    `--problem MODULE:CLASS`. The subclass must define both languages and `pairs`.

    Attributes:
        name: Value of `--problem`; set automatically for a custom class.
        source_lang: Language code of the sources, e.g. "en".
        target_lang: Language code of the targets, e.g. "de"; "trees" for linearised
            trees (see trees.py), which are scored with PARSEVAL.
        data_dir: Value of `--data_dir`, or None.
    """

    name: str
    source_lang: str
    target_lang: str

    def __init__(self, data_dir: str | None = None) -> None:
        self.data_dir = data_dir

    @abstractmethod
    def pairs(self, split: str) -> Iterator[tuple[str, str]]:
        """Yields (source, target), always in the same order.

        Raises UserError if `split` is not in `SPLITS` or cannot be read.
        """

    def has(self, split: str) -> bool:
        """Returns whether a split exists; a training does not need "val" and "test"."""
        check_split(split)
        return True

    def description(self, split: str) -> str:
        """Returns a short description of a split, e.g. its name and size."""
        return f"{self.name}, {split}"

    def count(self, split: str) -> int | None:
        """Returns the number of pairs of a split, or None if it is not yet known."""
        return None

    def fingerprint(self) -> str:
        """Returns a string that identifies the training data.

        Every training command calls this method. This implementation hashes all pairs;
        override it if that takes too long.
        """
        languages = f"{self.source_lang} {self.target_lang}"
        return hash_of_pairs(self.pairs("train"), languages)


def check_split(split: str) -> None:
    """Raises UserError if `split` is not in `SPLITS`."""
    if split not in SPLITS:
        raise UserError(f"split {split!r}: it must be one of {', '.join(SPLITS)}")


def hash_of_pairs(pairs: Iterable[tuple[str, str]], text: str = "") -> str:
    """Returns the hexadecimal SHA-256 of a text and the pairs, in order."""
    digest = hashlib.sha256(text.encode())
    for source, target in pairs:
        digest.update(f"{source}\n{target}\n".encode())
    return digest.hexdigest()
