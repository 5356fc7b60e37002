"""Which pieces stop, or start, in the middle of a word."""

import re

from t2t_repro.tokenizers.tokenizer import WORD_PIECE_SUFFIX, Tokenizer

_BYTE = re.compile("<0x[0-9A-F]{2}>")


def word_joins(tokenizer: Tokenizer, rows: int) -> tuple[list[bool], list[bool]]:
    """Returns for every row of a table whether it joins the next, and the last piece.

    tensor2tensor's pieces end a word with `_`, SentencePiece's begin one with U+2581;
    its punctuation stands by itself, its bytes are of a word.
    """
    names = tokenizer.pieces[2:]
    if tokenizer.file_name.endswith(WORD_PIECE_SUFFIX):
        joins_next = [not name.endswith("_") for name in names]
        joins_last = [False] * len(names)
    else:
        joins_next = [False] * len(names)
        joins_last = [bool(name[:1].isalnum() or _BYTE.match(name)) for name in names]
    filling = [False] * (rows - len(names) - 2)
    special = [False, False]  # Padding and the end join nothing.
    return special + joins_next + filling, special + joins_last + filling
