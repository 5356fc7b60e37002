"""Tokenizer with one token per character."""

import functools

from t2t_repro.tokenizers.plain_tokenizer import PlainTokenizer, Side


class CodePoints(Side):
    """Vocabulary of one id per character: code point + 2."""

    size = 60_000

    def encode(self, text):
        return [ord(character) + 2 for character in text]


class CodePointTokenizer:
    """Tokenizer with one token per character."""

    make_plain = functools.partial(PlainTokenizer, CodePoints(), CodePoints())

    def __init__(self, vocab_size=60_000, fingerprint="vocabulary-1"):
        self.vocab_size = vocab_size
        self.fingerprint = fingerprint

    @property
    def target(self):
        """Tokenizer of the targets."""
        return self
