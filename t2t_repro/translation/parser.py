"""A translator of words into linearised trees as a parser of sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from t2t_repro.problems.tree_repair import Repair, escaped, repair
from t2t_repro.problems.trees import TREES
from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.system.errors import UserError
from t2t_repro.translation.translator import Translation, Translator


def check_is_parser(directory: ModelDir) -> None:
    """Raises UserError if a model was not trained to parse."""
    target_lang = directory.provenance().target_lang
    if target_lang != TREES:
        raise UserError(
            f"--model_dir {directory.path} translates into {target_lang}, not into "
            "trees; train a parser, for example with --hparams parsing_small"
        )


class Parser:
    """Parses lines, and looks like a translator to what reads and writes files.

    Every sentence gets a tree over exactly its words; see `parse_of`.

    Args:
        translator: of a model whose targets are linearised trees; its `search.nbest`
            says how many hypotheses are looked at.

    Attributes:
        parsed: sentences that were parsed so far.
        repaired: of those, how many had no hypothesis that is a tree over the words.
    """

    def __init__(self, translator: Translator) -> None:
        self.search = translator.search
        self.max_input_length = translator.max_input_length
        self.parsed = 0
        self.repaired = 0
        self._translator = translator

    def fingerprint(self) -> str:
        """Identifies the weights and the vocabulary, and that trees are written."""
        return f"trees:{self._translator.fingerprint()}"

    def translate_window(
        self,
        lines: Sequence[str],
        batch_size: int = 32,
        progress: Callable[[int, int], object] | None = None,
        prefixes: Sequence[str] | None = None,
    ) -> list[Translation]:
        """Parses a list of sentences, the longest first.

        Args:
            lines: sentences as the treebank splits them into words, with spaces
                between; brackets may be written as such, too.
            batch_size: as in `Translator.translate_window`.
            progress: likewise.
            prefixes: likewise.

        Returns:
            A tree for each, in their order; blank lines stay empty.
        """
        sentences = [words_of(line) for line in lines]
        texts = [" ".join(words) for words in sentences]
        found = self._translator.translate_window(texts, batch_size, progress, prefixes)
        return [
            self._parsed(words, each) if words else each
            for words, each in zip(sentences, found, strict=True)
        ]

    def _parsed(self, words: Sequence[str], found: Translation) -> Translation:
        """Puts the tree in the place of tags."""
        best = parse_of(words, found)
        self.parsed += 1
        self.repaired += best.needed
        return found._replace(text=best.tree, others=())


def words_of(line: str) -> list[str]:
    """Returns the words of a line, brackets written as in the treebank."""
    return [escaped(word) for word in line.split()]


def parse_of(words: Sequence[str], found: Translation) -> Repair:
    """Makes a tree of what a model found for a sentence.

    The best hypothesis that is a tree over the words, as `words_of` returns them, is
    taken; if none is, the best of all is repaired (see problems/tree_repair.py).
    """
    texts = (found.text, *(other.text for other in found.others))
    parses = (repair(words, text.split()) for text in texts)
    first = next(parses)
    return next((p for p in (first, *parses) if not p.needed), first)
