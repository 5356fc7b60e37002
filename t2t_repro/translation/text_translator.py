"""Translation of texts with several sentences or lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf

from t2t_repro.translation.sentences import SentenceSplitter
from t2t_repro.translation.terms import TermTranslator
from t2t_repro.translation.translation import Translation
from t2t_repro.translation.translator import MOST_CHARACTERS, Translator

MOST_TEXT_CHARACTERS = 1 << 20
"""Maximum number of characters of a text, which limits memory."""


class TextTranslator:
    """Translates texts sentence by sentence; can replace a `Translator`.

    The separators between sentences are kept, so that the translation has the line
    breaks and paragraphs of the text.

    Args:
        translator: Translator of sentences; its `search.nbest` is 1.
        splitter: Rule by which texts are divided.
        every: Whether all texts are divided into sentences; otherwise only those that
            have a line with too many subwords, and other texts into lines.

    Attributes:
        limit: Maximum length of a text in messages.
    """

    limit = f"{MOST_TEXT_CHARACTERS:,} characters"

    def __init__(
        self,
        translator: Translator | TermTranslator,
        splitter: SentenceSplitter,
        every: bool,
    ) -> None:
        self.translator = translator
        self.search = translator.search
        self.max_input_length = translator.max_input_length
        self._every = every
        self._splitter = splitter

    def fingerprint(self) -> str:
        """Identifies the weights, the vocabulary and the division."""
        prefix = "sentences:" if self._every else ""
        return prefix + self.translator.fingerprint()

    def translate_window(
        self,
        lines: Sequence[str],
        batch_size: int = 32,
        progress: Callable[[int, int], object] | None = None,
        prefixes: Sequence[str] | None = None,
    ) -> list[Translation]:
        """Translates a list of texts; see `Translator.translate_window`.

        `prefixes` must be None.

        Returns:
            One translation per text, in order. Its numbers of tokens and log
            probabilities are sums over the sentences, its score is their mean.
        """
        assert prefixes is None
        if not (self._every or self._any_divided(lines)):
            return self.translator.translate_window(lines, batch_size, progress)
        texts = tf.constant([line[:MOST_TEXT_CHARACTERS] for line in lines], tf.string)
        splitter = self._splitter
        divide = splitter.sentences if self._every else splitter.short_lines
        sentences = divide(texts)
        inputs = [each.decode() for each in sentences.inputs.numpy()]
        done = 0

        def count(number: int, tokens: int) -> None:
            nonlocal done
            before = len(lines) * done // len(inputs)
            done += number
            if progress is not None:
                progress(len(lines) * done // len(inputs) - before, tokens)

        parts = self.translator.translate_window(inputs, batch_size, count)
        joined = sentences.join(tf.constant([part.text for part in parts]), len(lines))
        parts_of: list[list[Translation]] = [[] for _ in lines]
        for row, part in zip(sentences.rows.numpy(), parts, strict=True):
            parts_of[row].append(part)
        return [
            self._joined(line, text.decode(), own)
            for line, text, own in zip(lines, joined.numpy(), parts_of, strict=True)
        ]

    def _joined(
        self, line: str, text: str, parts: Sequence[Translation]
    ) -> Translation:
        """Returns the translation of a text; `parts` are those of its sentences."""
        scores = [part.score for part in parts if part.tokens]
        return Translation(
            text,
            sum(scores) / max(len(scores), 1),
            sum(part.tokens for part in parts),
            sum(part.log_prob for part in parts),
            len(line) > MOST_TEXT_CHARACTERS or any(part.cut for part in parts),
            divided=not self._every and len(parts) > 1 + line.count("\n"),
        )

    def _any_divided(self, lines: Sequence[str]) -> bool:
        """Returns whether any text has several lines or too many subwords."""
        if any("\n" in line for line in lines):
            return True
        # A character has at most ten subwords.
        least = self.max_input_length // 10
        texts = [line[:MOST_CHARACTERS] for line in lines if len(line) >= least]
        lengths = self._splitter.tokenizer.encode(
            tf.constant(texts, tf.string)
        ).row_lengths()
        return bool(tf.reduce_any(lengths > self.max_input_length))
