"""Base class of the translators that wrap another translator."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.translation.translation import Translation
from t2t_repro.translation.translator import Translator

Progress = Callable[[int, int], object] | None
"""Callback after each batch, as in `Translator.translate_window`."""


class TranslatorWrapper(ABC):
    """Changes the lines before another translator reads them, or their translations.

    A wrapper can replace a `Translator`, but supports no prefixes. Several wrappers are
    combined in this order, from the inside: `TermTranslator`, `PlaceholderTranslator`,
    `TextTranslator`.

    Args:
        translator: Translator or wrapper.
        identity: Beginning of the fingerprint, which identifies the changes.

    Attributes:
        translator: The wrapped translator.
        search: Settings of the search.
        max_input_length: Maximum number of subwords of a sentence, EOS included.
        limit: Maximum length of a line, as a phrase for messages.
    """

    def __init__(self, translator: AnyTranslator, identity: str = "") -> None:
        self.translator = translator
        self.search: DecodingConfig = translator.search
        self.max_input_length: int = translator.max_input_length
        self.limit: str = translator.limit
        self._identity = identity

    def fingerprint(self) -> str:
        """Identifies the weights, the vocabulary and the changes."""
        return self._identity + self.translator.fingerprint()

    def translate_window(
        self,
        lines: Sequence[str],
        batch_size: int = 32,
        progress: Progress = None,
        prefixes: Sequence[str] | None = None,
    ) -> list[Translation]:
        """Translates a list of lines; see `Translator.translate_window`.

        `prefixes` must be None.
        """
        assert prefixes is None
        return self._translate(lines, batch_size, progress)

    @abstractmethod
    def _translate(
        self, lines: Sequence[str], batch_size: int, progress: Progress
    ) -> list[Translation]:
        """Implements `translate_window`."""


AnyTranslator = Translator | TranslatorWrapper
