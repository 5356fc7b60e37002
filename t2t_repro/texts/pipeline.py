"""The way of a text through a model: from text to text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from t2t_repro.texts.division import MOST_TEXT_CHARACTERS, Division, WholeTexts
from t2t_repro.texts.placeholders import AlignWords, Placeholders
from t2t_repro.texts.terms import RequiredTerms
from t2t_repro.texts.translation import Progress, Translation


class TextTranslator(Protocol):
    """Translates texts; `Pipeline` and `Parser` do.

    Attributes:
        limit: Maximum length of a text, as a phrase for messages.
    """

    limit: str

    def fingerprint(self) -> str:
        """Returns a text that identifies all that determines the translations."""
        ...

    def translate_window(
        self,
        texts: Sequence[str],
        /,
        batch_size: int = 32,
        progress: Progress = None,
        prefixes: Sequence[str] | None = None,
    ) -> list[Translation]:
        """Translates texts; see `Pipeline.translate_window`."""
        ...


class LineTranslator(TextTranslator, Protocol):
    """Translates lines, also with terms; `Translator` does."""

    def translate_window(
        self,
        lines: Sequence[str],
        /,
        batch_size: int = 32,
        progress: Progress = None,
        prefixes: Sequence[str] | None = None,
        terms: Sequence[Sequence[str]] | None = None,
    ) -> list[Translation]:
        """Translates lines; see `Translator.translate_window`."""
        ...


class Pipeline:
    """Translates texts, which may have several sentences, placeholders and terms.

    Args:
        translator: Translates lines.
        placeholders: Text that translations keep unchanged.
        align: Function that aligns the words of sentence pairs.
        terms: Lexical constraints; None for no constraints.
        division: Rule by which texts are divided; None: a text is one line.

    Attributes:
        limit: Maximum length of a text, as a phrase for messages.
        terms: The lexical constraints.
    """

    def __init__(
        self,
        translator: LineTranslator,
        placeholders: Placeholders,
        align: AlignWords,
        terms: RequiredTerms | None = None,
        division: Division | None = None,
    ) -> None:
        self._translator = translator
        self._placeholders = placeholders
        self._align = align
        self.terms = terms
        self._division = division
        self.limit = translator.limit
        if division:
            self.limit = f"{MOST_TEXT_CHARACTERS:,} characters"

    def fingerprint(self) -> str:
        """Identifies the weights, the vocabulary and the changes of the text.

        The text decides whether an interrupted translation may resume.
        """
        by_sentence = self._division is not None and self._division.by_sentence
        return (
            ("sentences:" if by_sentence else "")
            + self._placeholders.fingerprint
            + (self.terms.fingerprint if self.terms else "")
            + self._translator.fingerprint()
        )

    def translate_window(
        self,
        texts: Sequence[str],
        batch_size: int = 32,
        progress: Progress = None,
        prefixes: Sequence[str] | None = None,
    ) -> list[Translation]:
        """Translates a list of texts.

        Args:
            texts: Texts.
            batch_size: Maximum number of sentences per batch.
            progress: Callback after each batch; its arguments are the numbers of texts
                and of target subwords translated since the last call.
            prefixes: Prefix of each translation; None for no prefixes. Such texts are
                neither divided nor masked.

        Returns:
            One translation per text, in order.

        Raises:
            UserError: A prefix, or the minimum length, exceeds the length limit.
        """
        if prefixes is not None:
            return self._translator.translate_window(
                texts, batch_size, progress, prefixes
            )
        divided = self._divide(texts)
        masked = [
            self._placeholders.remove(line, spans)
            for line, spans in zip(divided.lines, divided.spans, strict=True)
        ]
        translations = self._translate(
            [each.text for each in masked], batch_size, divided.count_texts(progress)
        )
        translations = self._placeholders.restore(
            divided.lines, masked, translations, self._align
        )
        return divided.join(translations)

    def _divide(self, texts: Sequence[str]) -> WholeTexts:
        """Divides texts, unless each is a line."""
        find = self._placeholders.find
        if self._division is None:
            return WholeTexts(texts, [find(text) for text in texts])
        return self._division(texts, find)

    def _translate(
        self, lines: Sequence[str], batch_size: int, progress: Progress
    ) -> list[Translation]:
        """Translates lines without placeholders.

        Lines without terms are translated without constraints, so that terms do not
        change them.
        """
        translate = self._translator.translate_window
        if self.terms is None:
            return translate(lines, batch_size, progress)
        required = self.terms.find_terms(lines)
        spelled = self.terms.select_spelled(required)
        translations: dict[int, Translation] = {}
        for constrained in (False, True):
            numbers = [n for n, row in enumerate(spelled) if bool(row) is constrained]
            results = translate(
                [lines[n] for n in numbers],
                batch_size,
                progress,
                terms=[spelled[n] for n in numbers] if constrained else None,
            )
            translations |= zip(numbers, results, strict=True)
        in_order = [translations[n] for n in range(len(lines))]
        return self.terms.check(required, in_order)
