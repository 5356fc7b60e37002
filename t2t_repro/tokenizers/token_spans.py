"""Which part of a text each subword spells.

It is what decoding gives more with the subword than without it. That holds for any
vocabulary, however it marks words, bytes and escapes.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from t2t_repro.tokenizers.tokenizer import Tokenizer

_SPACE = -1


class TokenSpan(NamedTuple):
    """Where a token stands in the decoded text, in characters.

    Attributes:
        start: the first character that the token completes.
        end: the character after the last; the next token's start.
        pending: whether it also begins a character that a later token completes (the
            bytes of a character, or the parts of an escape).
    """

    start: int
    end: int
    pending: bool


class SpelledText(NamedTuple):
    """A decoded text and what each of its tokens spells.

    Attributes:
        text: what the ids decode to.
        spans: one per id; they cover the text once, in order.
    """

    text: str
    spans: list[TokenSpan]

    def pieces(self) -> list[str]:
        """Returns what each token adds to the text; joined they are the text."""
        return [self.text[span.start : span.end] for span in self.spans]


def spell_tokens(
    tokenizer: Tokenizer, rows: Sequence[Sequence[int]]
) -> list[SpelledText]:
    """Finds what each token of some sentences spells.

    Every beginning of every row, ids without EOS, is decoded: the work grows with the
    square of a row's length.
    """
    beginnings = [
        np.asarray(row[:k], np.int32) for row in rows for k in range(1, len(row) + 1)
    ]
    if not beginnings:
        return [SpelledText("", []) for _ in rows]
    lengths = [len(ids) for ids in beginnings]
    ids = tf.RaggedTensor.from_row_lengths(np.concatenate(beginnings), lengths)
    texts = (text.decode() for text in tokenizer.decode(ids).numpy())
    return [_spelled(list(islice(texts, len(row)))) for row in rows]


def words_of_tokens(spelled: SpelledText, text: str) -> list[tuple[int, ...]]:
    """Finds the words of a text that each token belongs to.

    A token of spaces alone, or of the beginning of a character, belongs to the word
    that follows; one that only ends a word belongs to that word. tensor2tensor's
    pieces can reach from one word into the next (`," `), and then belong to both.

    Args:
        spelled: the tokens of the text.
        text: as it was given, in case the vocabulary normalises it; words are what
            `str.split` finds in it, counted from 0.

    Returns:
        The numbers of each token's words, ascending; none for spaces at the end.
    """
    word_at = _words_of_characters(spelled.text, text)
    belongs: list[tuple[int, ...]] = []
    for start, end, pending in spelled.spans:
        words = {word for word in word_at[start:end] if word != _SPACE}
        if words:
            belongs.append(tuple(sorted(words)))
        elif start == end and start > 0 and not pending:
            belongs.append(belongs[-1])
        else:
            following = (word for word in word_at[start:] if word != _SPACE)
            belongs.append(tuple(islice(following, 1)))
    return belongs


def _spelled(beginnings: list[str]) -> SpelledText:
    """Compares the texts of a row's beginnings; the last one is the whole."""
    text = beginnings[-1] if beginnings else ""
    spans, start = [], 0
    for beginning in beginnings:
        end = start
        if beginning.startswith(text[:start]):
            shorter = min(len(beginning), len(text))
            while end < shorter and beginning[end] == text[end]:
                end += 1
        # What is not of the text yet stands for a character that is not whole.
        spans.append(TokenSpan(start, end, pending=beginning != text[:end]))
        start = end
    return SpelledText(text, spans)


def _words_of_characters(decoded: str, text: str) -> list[int]:
    """Returns for each character of the decoded text its word in the given one."""
    words, number, inside = [], -1, False
    for character in text:
        number += not inside and not character.isspace()
        inside = not character.isspace()
        words.append(number if inside else _SPACE)
    if decoded == text:
        return words
    words.append(_SPACE)  # What the decoded text has behind the end of the given one.
    matcher = difflib.SequenceMatcher(None, text, decoded, autojunk=False)
    found = []
    for _, start, end, begin, stop in matcher.get_opcodes():
        # Where the two differ, the characters are spread evenly over one another.
        for place in range(begin, stop):
            word = words[start + (place - begin) * (end - start) // (stop - begin)]
            found.append(_SPACE if decoded[place].isspace() else word)
    return found
