"""Division of texts into the lines that a model translates."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import tensorflow as tf

from t2t_repro.texts.placeholder_patterns import Span
from t2t_repro.texts.placeholders import pair_tags
from t2t_repro.texts.sentence_rules import MAYBE_SEVERAL
from t2t_repro.texts.sentences import Sentences, SentenceSplitter
from t2t_repro.texts.translation import Hypothesis, Progress, Translation

MOST_TEXT_CHARACTERS = 1 << 20
"""Maximum number of characters of a text, which limits memory."""


class WholeTexts:
    """Texts that are translated undivided.

    Args:
        texts: Texts.
        spans: Spans of the placeholders of each text.
        several: Indices of the texts that have several sentences in a line.

    Attributes:
        lines: Lines to translate.
        spans: Spans of the placeholders of each line.
    """

    def __init__(
        self,
        texts: Sequence[str],
        spans: Sequence[Sequence[Span]],
        several: Collection[int] = (),
    ) -> None:
        self.lines, self.spans, self._several = texts, spans, several

    def count_texts(self, progress: Progress) -> Progress:
        """Returns the callback that receives the progress of the lines."""
        return progress

    def join(self, translations: Sequence[Translation]) -> list[Translation]:
        """Returns the translations of the texts from those of the lines."""
        return [
            each._replace(several=True) if number in self._several else each
            for number, each in enumerate(translations)
        ]


class DividedTexts(WholeTexts):
    """Texts and their sentences, or lines, which are translated separately.

    Args:
        texts: Texts.
        masked: The texts with masked placeholders.
        sentences: Sentences of the masked texts.
        by_sentence: Whether all texts were to be divided into sentences.
        several: As for `WholeTexts`.
    """

    def __init__(
        self,
        texts: Sequence[str],
        masked: Sequence[MaskedText],
        sentences: Sentences,
        by_sentence: bool,
        several: Collection[int] = (),
    ) -> None:
        super().__init__(*_unmask(sentences, masked), several)
        self._texts, self._masked, self._sentences = texts, masked, sentences
        self._by_sentence = by_sentence

    def count_texts(self, progress: Progress) -> Progress:
        """Returns a callback for lines that reports the number of texts."""
        if progress is None:
            return None
        texts, lines, done = len(self._texts), len(self.lines), 0

        def count(number: int, tokens: int) -> None:
            nonlocal done
            before = texts * done // lines
            done += number
            progress(texts * done // lines - before, tokens)

        return count

    def join(self, translations: Sequence[Translation]) -> list[Translation]:
        """Joins the translations of the sentences of each text.

        The separators between sentences are kept, so that a translation has the line
        breaks and paragraphs of its text. Its numbers of tokens and log probabilities
        are sums over the sentences, its score is their mean.
        """
        sentences, texts = self._sentences, self._texts
        joined = sentences.join(
            tf.constant([each.text for each in translations]), len(texts)
        )
        groups: list[list[Translation]] = [[] for _ in texts]
        for row, each in zip(sentences.rows.numpy(), translations, strict=True):
            groups[row].append(each)
        results = [
            Translation(
                (Hypothesis(text.decode(), *_sum_scores(own)),),
                len(line) > MOST_TEXT_CHARACTERS or any(each.cut for each in own),
                divided=not self._by_sentence
                and len(own) > 1 + masked.text.count("\n"),
                missing_terms=tuple(
                    dict.fromkeys(term for each in own for term in each.missing_terms)
                ),
            )
            for line, masked, text, own in zip(
                texts, self._masked, joined.numpy(), groups, strict=True
            )
        ]
        return [
            each._replace(several=number in self._several and not each.divided)
            for number, each in enumerate(results)
        ]


class Division:
    """The rule by which texts are divided. Placeholders are not divided.

    Args:
        splitter: Divides texts into sentences and lines.
        by_sentence: Whether all texts are divided into sentences; otherwise only those
            that have a line with too many subwords, and other texts into lines.
    """

    def __init__(self, splitter: SentenceSplitter, by_sentence: bool) -> None:
        self._splitter = splitter
        self.by_sentence = by_sentence

    def __call__(
        self, texts: Sequence[str], find: Callable[[str], Sequence[Span]]
    ) -> WholeTexts:
        """Divides texts.

        Args:
            texts: Texts, cut to `MOST_TEXT_CHARACTERS`.
            find: Function that returns the spans of the placeholders of a text.
        """
        starts = [text[:MOST_TEXT_CHARACTERS] for text in texts]
        masked = [mask(text, find(text)) for text in starts]
        masks = [each.text for each in masked]
        several = () if self.by_sentence else self._find_several(masks)
        if not (self.by_sentence or self._has_long_or_several_lines(masks)):
            return WholeTexts(texts, [each.spans for each in masked], several)
        splitter = self._splitter
        divide = splitter.sentences if self.by_sentence else splitter.short_lines
        # A direct call would log that the functions of many splitters are traced.
        sentences = divide.get_concrete_function()(tf.constant(masks, tf.string))
        return DividedTexts(texts, masked, sentences, self.by_sentence, several)

    def _find_several(self, texts: Sequence[str]) -> Collection[int]:
        """Returns the indices of the texts that have a line with several sentences."""
        numbers = [n for n, text in enumerate(texts) if MAYBE_SEVERAL.search(text)]
        if not numbers:
            return ()
        divide = self._splitter.sentences.get_concrete_function()
        divided = divide(tf.constant([texts[number] for number in numbers]))
        sentences = Counter(divided.rows.numpy()[divided.pieces.numpy() != b""])
        return {
            number
            for row, number in enumerate(numbers)
            if sentences[row] > len([*filter(str.strip, texts[number].split("\n"))])
        }

    def _has_long_or_several_lines(self, texts: Sequence[str]) -> bool:
        """Returns whether any text has several lines or too many subwords."""
        if any("\n" in text for text in texts):
            return True
        most = self._splitter.max_input_length
        # NFKC and bytes turn the character U+FDFA into 33 subwords.
        encode = self._splitter.tokenizer.plain.encode
        return any(
            len(text) >= most // 33 and len(encode(text)) > most for text in texts
        )


class MaskedText(NamedTuple):
    """A text in which each placeholder is a single character.

    The division into sentences reads `#` for a placeholder, and brackets for the tags
    of a pair, because they may enclose the beginning or the end of a sentence.

    Attributes:
        text: The masked text.
        offsets: Index of each of its characters in the text, and the text's length.
        line: The text.
        spans: Spans of the placeholders in the text.
    """

    text: str
    offsets: Sequence[int]
    line: str
    spans: Sequence[Span]

    def part(self, start: int, end: int) -> tuple[str, list[Span]]:
        """Returns a part of the text, and the spans of placeholders in the part.

        Args:
            start: Index of its first character in the masked text.
            end: Index after its last character in the masked text.
        """
        start, end = self.offsets[start], self.offsets[end]
        first, last = (bisect_left(self.spans, (place,)) for place in (start, end))
        return self.line[start:end], [
            (low - start, high - start) for low, high in self.spans[first:last]
        ]


def mask(line: str, spans: Sequence[Span]) -> MaskedText:
    """Masks the placeholders of a text at these spans."""
    partners = pair_tags([line[start:end] for start, end in spans])
    texts, offsets, last = [], array("q"), 0
    for n, ((start, end), partner) in enumerate(zip(spans, partners, strict=True)):
        texts += [line[last:start], "#" if partner is None else "()"[partner < n]]
        offsets.extend(range(last, start + 1))
        last = end
    offsets.extend(range(last, len(line) + 1))
    return MaskedText("".join([*texts, line[last:]]), offsets, line, spans)


def _sum_scores(translations: Sequence[Translation]) -> tuple[float, int, float]:
    """Returns the score, number of tokens and log probability of several sentences."""
    scores = [each.score for each in translations if each.best.tokens]
    return (
        sum(scores) / max(len(scores), 1),
        sum(each.best.tokens for each in translations),
        sum(each.best.log_prob for each in translations),
    )


def _unmask(
    sentences: Sentences, masked: Sequence[MaskedText]
) -> tuple[list[str], list[list[Span]]]:
    """Returns the sentences of masked texts with their placeholders, and the spans."""
    lines: list[str] = []
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
        lines.append(label + line)
        spans.append([(low + len(label), high + len(label)) for low, high in own])
    return lines, spans
