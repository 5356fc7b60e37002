"""Pieces that end or begin in the middle of a word."""

import re

from t2t_repro.tokenizers.tokenizer import WORD_PIECE_SUFFIX, Tokenizer

# Closing punctuation, which is never directly before a word. It lacks the semicolon,
# which also ends the code of an escaped character, as in "\1078;_".
_CLOSING = tuple(".,:!?)]}")
_BYTE = re.compile("<0x[0-9A-F]{2}>")


def word_joins(tokenizer: Tokenizer, rows: int) -> tuple[list[bool], list[bool]]:
    """Returns which ids join the next piece, and which join the previous piece.

    Joined pieces belong to one word. tensor2tensor marks the end of a word with `_`,
    but closing punctuation without a space joins the next word. SentencePiece marks the
    beginning with U+2581; its punctuation never joins the previous piece, and its bytes
    always do. subword-nmt marks pieces that join the next one with `@@`.

    Args:
        tokenizer: Tokenizer of the ids.
        rows: Length of the returned lists; ids outside the vocabulary join nothing.
    """
    names = tokenizer.pieces[2:]
    if tokenizer.file_name.endswith(WORD_PIECE_SUFFIX):
        joins_next = [
            not name.endswith("_") or name[:-1].endswith(_CLOSING) for name in names
        ]
        joins_last = [False] * len(names)
    elif not any(name.startswith("\u2581") for name in names):
        joins_next = [name.endswith("@@") for name in names]
        joins_last = [False] * len(names)
    else:
        joins_next = [False] * len(names)
        joins_last = [bool(name[:1].isalnum() or _BYTE.match(name)) for name in names]
    padding = [False] * (rows - len(names) - 2)
    special = [False, False]  # padding and EOS
    return special + joins_next + padding, special + joins_last + padding
