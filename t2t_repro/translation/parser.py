"""Constituency parsing with a model that translates words into linearized trees."""

from __future__ import annotations

from collections.abc import Sequence

from t2t_repro.problems.tree_repair import Repair, escape_brackets, repair
from t2t_repro.problems.trees import TREES
from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.system.errors import UserError
from t2t_repro.texts.translation import Progress, Translation
from t2t_repro.translation.translator import Translator


def check_is_parser(directory: ModelDir) -> None:
    """Raises UserError if the model is not a parser."""
    target_lang = directory.provenance().target_lang
    if target_lang != TREES:
        raise UserError(
            f"--model_dir {directory.path} translates into {target_lang}, not into "
            "trees; train a parser, for example with --hparams parsing_small"
        )


class Parser:
    """Parses sentences: every sentence gets a tree over exactly its words.

    Sentences are tokenized as in the treebank. Brackets may be escaped ("-LRB-") or
    not. See `choose_parse`.

    Args:
        translator: Translator whose targets are linearized trees. Its `search.nbest`
            is the number of hypotheses that are considered for each sentence.

    Attributes:
        parsed: Number of sentences parsed so far.
        repaired: Number of those trees that had to be repaired.
        limit: Maximum length of a line, as a phrase for messages.
    """

    def __init__(self, translator: Translator) -> None:
        self._translator = translator
        self.limit = translator.limit
        self.parsed = 0
        self.repaired = 0

    def fingerprint(self) -> str:
        """Identifies the weights and the vocabulary, and that lines become trees."""
        return f"trees:{self._translator.fingerprint()}"

    def summary(self) -> str:
        """Returns a line with the number of repaired trees."""
        return (
            f"{self.repaired:,} of {self.parsed:,} trees were repaired, because no "
            "hypothesis was a tree over the words of the sentence"
        )

    def translate_window(
        self,
        texts: Sequence[str],
        batch_size: int = 32,
        progress: Progress = None,
        prefixes: Sequence[str] | None = None,
    ) -> list[Translation]:
        """Parses sentences; see `Translator.translate_window`, without prefixes."""
        assert prefixes is None
        sentences = [split_words(line) for line in texts]
        lines = [" ".join(words) for words in sentences]
        translations = self._translator.translate_window(lines, batch_size, progress)
        return [
            self._parse(words, translation) if words else translation
            for words, translation in zip(sentences, translations, strict=True)
        ]

    def _parse(self, words: Sequence[str], translation: Translation) -> Translation:
        """Replaces the linearized tree with a tree that contains the words."""
        best = choose_parse(words, translation)
        self.parsed += 1
        self.repaired += best.needed
        return translation.replace_texts(best.tree)


def split_words(line: str) -> list[str]:
    """Returns the words of a line, with brackets escaped as in the treebank."""
    return [escape_brackets(word) for word in line.split()]


def choose_parse(words: Sequence[str], translation: Translation) -> Repair:
    """Returns the tree of a sentence.

    The tree is the best hypothesis that is a tree over the words. If there is none, the
    best hypothesis is repaired (see problems/tree_repair.py).

    Args:
        words: Words of the sentence, as `split_words` returns them.
        translation: Hypotheses of the model, which are linearized trees.
    """
    parses = (repair(words, each.text.split()) for each in translation.hypotheses)
    first = next(parses)
    return next((p for p in (first, *parses) if not p.needed), first)
