"""Character spans of the tokens of a text.

A token's span is the text that decoding appends when the token is added to the
preceding ones. This definition works for every vocabulary, regardless of how it marks
words, bytes and escapes.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from itertools import islice, takewhile
from operator import eq
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from t2t_repro.tokenizers.tokenizer import Tokenizer

SPACED_WORD = r"\S+"
"""Pattern of a word that white space separates from others."""

_PUNCTUATION = (
    r"!-/:-@[-`{-~\u00a1-\u00bf\u060c\u061b\u061f\u0964\u0965\u2010-\u206f\u3000-\u3004"
    r"\u3008-\u3020\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
)
UNSPACED = (
    r"\u3005-\u3007\u3021-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    r"\U00020000-\U0003ffff"
)
"""Chinese characters and Japanese syllables; content of a regex character class."""

_LETTERS = rf"[^\s{_PUNCTUATION}{UNSPACED}]+"
WORD = rf"[{UNSPACED}]|{_LETTERS}(?:['\u2019.,:@_-]{_LETTERS})*|\S"
"""Pattern of a word without its punctuation, or of a punctuation mark.

Words may contain an apostrophe, hyphen or point: "don't", "3.5". Each Chinese character
and Japanese syllable is a word, because no spaces separate words in these scripts."""

OPENING = "([{\u00ab\u201e\u00bf\u00a1\u3008\u300a\u300c\u300e\u3010\uff08"
"""Marks that no space follows."""

CLOSING = ")]}\u00bb.,;:!?%\u2026\u201d\u3001\u3002\u3009\u300b\u300d\u300f\u3011"
CLOSING += "\uff01\uff09\uff0c\uff1a\uff1b\uff1f"
"""Marks that no space precedes."""

_SPACE = -1


class TokenSpan(NamedTuple):
    """Span of a token in the decoded text, in characters.

    Attributes:
        start: Index of the first character that the token completes.
        end: Index after the last such character, which is the next token's start.
        pending: Whether the token also begins a character that a later token completes
            (if a character is encoded as several bytes or as an escape).
    """

    start: int
    end: int
    pending: bool


class SpelledText(NamedTuple):
    """Decoded text and the spans of its tokens.

    Attributes:
        text: The decoded text.
        spans: The span of each token; consecutive spans cover the text exactly once.
    """

    text: str
    spans: list[TokenSpan]

    def pieces(self) -> list[str]:
        """Returns the part of the text in each token's span."""
        return [self.text[span.start : span.end] for span in self.spans]


def spell_tokens(
    tokenizer: Tokenizer, rows: Sequence[Sequence[int]]
) -> list[SpelledText]:
    """Decodes sentences and computes the spans of their tokens.

    Decodes every prefix of every row, so the cost is quadratic in a row's length.

    Args:
        tokenizer: Tokenizer of the ids.
        rows: The ids of each sentence, without EOS.
    """
    prefixes = [
        np.asarray(row[:k], np.int32) for row in rows for k in range(1, len(row) + 1)
    ]
    if not prefixes:
        return [SpelledText("", []) for _ in rows]
    lengths = [len(ids) for ids in prefixes]
    ids = tf.RaggedTensor.from_row_lengths(np.concatenate(prefixes), lengths)
    texts = (text.decode() for text in tokenizer.decode(ids).numpy())
    return [_spell(list(islice(texts, len(row)))) for row in rows]


def words_of_tokens(
    spelled: SpelledText, text: str, word: str = SPACED_WORD
) -> list[tuple[int, ...]]:
    """Returns the words of a text that each token belongs to.

    A token of only spaces, or of only the first bytes of a character, belongs to the
    next word. A token that only marks the end of a word belongs to that word.
    tensor2tensor's pieces can extend into the next word (`," `); such a piece belongs
    to both words.

    Args:
        spelled: The decoded text with its spans.
        text: The original text, which differs from the decoded one if the vocabulary
            normalizes text.
        word: Pattern of a word.

    Returns:
        For each token the ascending indices of its words in the text, by default in
        `text.split()`; empty for trailing spaces.
    """
    word_at = _words_of_characters(spelled.text, text, word)
    words_by_token: list[tuple[int, ...]] = []
    for start, end, pending in spelled.spans:
        words = {index for index in word_at[start:end] if index != _SPACE}
        if words:
            words_by_token.append(tuple(sorted(words)))
        elif start == end and start > 0 and not pending:
            words_by_token.append(words_by_token[-1])
        else:
            following = (index for index in word_at[start:] if index != _SPACE)
            words_by_token.append(tuple(islice(following, 1)))
    return words_by_token


def _spell(prefixes: list[str]) -> SpelledText:
    """Computes the spans of a row from the decoded text of each of its prefixes."""
    text = prefixes[-1] if prefixes else ""
    spans, start = [], 0
    for prefix in prefixes:
        end = start
        if prefix.startswith(text[:start]):
            # Count the equal characters up to the first difference.
            end += sum(takewhile(bool, map(eq, prefix[start:], text[start:])))
        # Incomplete characters and escapes decode to text that later tokens replace.
        spans.append(TokenSpan(start, end, pending=prefix != text[:end]))
        start = end
    return SpelledText(text, spans)


def _words_of_characters(decoded: str, text: str, word: str) -> list[int]:
    """Returns the index in the text of the word of each decoded character."""
    words = [_SPACE] * len(text)
    for number, match in enumerate(re.finditer(word, text)):
        words[match.start() : match.end()] = [number] * len(match[0])
    if decoded == text:
        return words
    words.append(_SPACE)  # for decoded characters after the end of `text`
    matcher = difflib.SequenceMatcher(None, text, decoded, autojunk=False)
    decoded_words = []
    for _, start, end, begin, stop in matcher.get_opcodes():
        # Map the characters of differing passages proportionally.
        for place in range(begin, stop):
            index = words[start + (place - begin) * (end - start) // (stop - begin)]
            decoded_words.append(_SPACE if decoded[place].isspace() else index)
    return decoded_words
