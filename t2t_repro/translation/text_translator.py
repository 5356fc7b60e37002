"""Translation of texts with several sentences or lines."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from t2t_repro.translation.placeholders import (
    MaskedText,
    PlaceholderTranslator,
    Span,
    mask,
)
from t2t_repro.translation.sentences import Sentences, SentenceSplitter
from t2t_repro.translation.translation import Translation
from t2t_repro.translation.translator import MOST_CHARACTERS
from t2t_repro.translation.wrapper import Progress, TranslatorWrapper

MOST_TEXT_CHARACTERS = 1 << 20
"""Maximum number of characters of a text, which limits memory."""


class TextTranslator(TranslatorWrapper):
    """Translates texts sentence by sentence.

    The separators between sentences are kept, so that the translation has the line
    breaks and paragraphs of the text. Placeholders are not divided.

    Args:
        translator: Translator of sentences; its `search.nbest` is 1.
        splitter: Rule by which texts are divided.
        every: Whether all texts are divided into sentences; otherwise only those that
            have a line with too many subwords, and other texts into lines.
    """

    translator: PlaceholderTranslator

    def __init__(
        self, translator: PlaceholderTranslator, splitter: SentenceSplitter, every: bool
    ) -> None:
        super().__init__(translator, "sentences:" if every else "")
        self.limit = f"{MOST_TEXT_CHARACTERS:,} characters"
        self._every = every
        self._splitter = splitter

    def _translate(
        self, lines: Sequence[str], batch_size: int, progress: Progress
    ) -> list[Translation]:
        """Implements `translate_window`.

        Returns:
            One translation per text, in order. Its numbers of tokens and log
            probabilities are sums over the sentences, its score is their mean.
        """
        find = self.translator.placeholders.find
        texts = [line[:MOST_TEXT_CHARACTERS] for line in lines]
        masked = [mask(text, find(text)) for text in texts]
        if not (self._every or self._any_divided([each.text for each in masked])):
            found = [each.spans for each in masked]
            return self.translator.keep(lines, found, batch_size, progress)
        splitter = self._splitter
        divide = splitter.sentences if self._every else splitter.short_lines
        sentences = divide(tf.constant([each.text for each in masked], tf.string))
        inputs, spans = _inputs(sentences, masked)
        done = 0

        def count(number: int, tokens: int) -> None:
            nonlocal done
            before = len(lines) * done // len(inputs)
            done += number
            if progress is not None:
                progress(len(lines) * done // len(inputs) - before, tokens)

        parts = self.translator.keep(inputs, spans, batch_size, count)
        joined = sentences.join(tf.constant([part.text for part in parts]), len(lines))
        parts_of: list[list[Translation]] = [[] for _ in lines]
        for row, part in zip(sentences.rows.numpy(), parts, strict=True):
            parts_of[row].append(part)
        return [
            Translation(
                text.decode(),
                *_scores(own),
                len(line) > MOST_TEXT_CHARACTERS or any(part.cut for part in own),
                divided=not self._every and len(own) > 1 + each.text.count("\n"),
                missing_terms=tuple(
                    dict.fromkeys(term for part in own for term in part.missing_terms)
                ),
            )
            for line, each, text, own in zip(
                lines, masked, joined.numpy(), parts_of, strict=True
            )
        ]

    def _any_divided(self, lines: Sequence[str]) -> bool:
        """Returns whether any text has several lines or too many subwords."""
        if any("\n" in line for line in lines):
            return True
        # NFKC and bytes turn the character U+FDFA into 33 subwords.
        least = self.max_input_length // 33
        texts = [line[:MOST_CHARACTERS] for line in lines if len(line) >= least]
        lengths = self._splitter.tokenizer.encode(
            tf.constant(texts, tf.string)
        ).row_lengths()
        return bool(tf.reduce_any(lengths > self.max_input_length))


def _scores(parts: Sequence[Translation]) -> tuple[float, int, float]:
    """Returns the score, number of tokens and log probability of several sentences."""
    scores = [part.score for part in parts if part.tokens]
    return (
        sum(scores) / max(len(scores), 1),
        sum(part.tokens for part in parts),
        sum(part.log_prob for part in parts),
    )


def _inputs(
    sentences: Sentences, masked: Sequence[MaskedText]
) -> tuple[list[str], list[list[Span]]]:
    """Returns the sentences of masked texts with their placeholders, and the spans."""
    inputs: list[str] = []
    spans: list[list[Span]] = []
    last, end = -1, 0
    columns = (sentences.inputs, sentences.pieces, sentences.separators)
    decoded = ([text.decode() for text in each.numpy()] for each in columns)
    for row, text, piece, separator in zip(
        sentences.rows.numpy(), *decoded, strict=True
    ):
        start = end if row == last else 0
        line, own = masked[row].part(start, start + len(piece))
        last, end = row, start + len(piece) + len(separator)
        label = text.removesuffix(piece)
        if own and not any(map(str.isalnum, piece)):
            label = ""  # The sentence is copied.
        inputs.append(label + line)
        spans.append([(low + len(label), high + len(label)) for low, high in own])
    return inputs, spans
