"""What a model learns from: sentence pairs, in three splits."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

SPLITS = ("train", "val", "test")


class Problem(ABC):
    """A source of sentence pairs in the splits "train", "val" and "test".

    A problem knows text only: subwords, batches and shapes are made from it later.

    Attributes:
        name: What `--problem` calls it.
        source_lang: Language code of the first half of each pair, e.g. "en".
        target_lang: Language code of the second half of each pair, e.g. "de"; "trees"
            if it is a linearised tree (see trees.py), which is scored as such.
    """

    name: str
    source_lang: str
    target_lang: str

    @abstractmethod
    def pairs(self, split: str) -> Iterator[tuple[str, str]]:
        """Yields (source, target) in an order that never changes.

        Args:
            split: "train", "val" or "test".

        Raises:
            UserError: `split` is none of the three, or its data cannot be read.
        """

    @abstractmethod
    def description(self, split: str) -> str:
        """Says in a few words what a split is, e.g. its name and number of lines."""

    @abstractmethod
    def fingerprint(self) -> str:
        """Identifies the data cheaply: equal data, equal string, and the reverse."""
