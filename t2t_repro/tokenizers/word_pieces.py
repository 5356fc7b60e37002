r"""The invertible word pieces of tensor2tensor: their rules and their file.

A text is cut wherever letters and digits meet anything else; a single space between
two words of letters is left out, since joining puts it back. Each word is spelled
with a final `_` and cut into the longest pieces of the vocabulary. Inside a word
`\` is spelled `\\`, `_` is spelled `\u`, and a character without a piece of its own
is spelled `\233;`, its code in decimal. So every text has pieces, there is no
"unknown", and the pieces give back the text exactly.

Source: tensor2tensor data_generators/tokenizer.py:encode, decode and
text_encoder.py:SubwordTextEncoder.
"""

from __future__ import annotations

import functools
import itertools
import sys
import unicodedata
from collections.abc import Iterable

from t2t_repro.system.errors import UserError

# The first two pieces of every vocabulary, ids 0 and 1. The `_` is missing in some
# of tensor2tensor's own files.
RESERVED_PIECES = ("<pad>_", "<EOS>_")
# What escapes are written with: each must be a piece by itself.
ESCAPE_CHARACTERS = frozenset("\\_u;0123456789")


def is_alphanumeric(character: str) -> bool:
    """Whether a character is a letter (category L) or a number (category N)."""
    return unicodedata.category(character)[0] in "LN"


@functools.cache
def class_boundaries() -> tuple[int, ...]:
    """The code points at which alphanumeric characters begin or end, in turn."""
    flags = [is_alphanumeric(chr(code)) for code in range(sys.maxunicode + 1)]
    return tuple(
        code
        for code, (before, here) in enumerate(itertools.pairwise([False, *flags]))
        if before != here
    )


def split_words(text: str) -> list[str]:
    """Cuts a text into runs of alphanumeric characters and of others in turn.

    The single spaces inside the text are left out.
    """
    runs = ["".join(run) for _, run in itertools.groupby(text, is_alphanumeric)]
    last = len(runs) - 1
    return [run for index, run in enumerate(runs) if run != " " or index in (0, last)]


def spell_character(character: str, alphabet: Iterable[str]) -> str:
    r"""Returns a character, or its escape if it is not in the alphabet of pieces.

    A line end is always an escape, since the vocabulary file has one piece per line.
    """
    if character == "\\":
        return "\\\\"
    if character == "_":
        return "\\u"
    if character in alphabet and character != "\n":
        return character
    return f"\\{ord(character)};"


def spell_word(word: str, alphabet: Iterable[str]) -> str:
    """Spells a word with escapes and the final `_`."""
    return "".join(spell_character(character, alphabet) for character in word) + "_"


def to_file(pieces: Iterable[str]) -> bytes:
    """The bytes of a vocabulary file: one piece per line, in single quotes."""
    return "".join(f"'{piece}'\n" for piece in pieces).encode()


def from_file(contents: bytes, path: str) -> list[str]:
    """Reads the pieces of a vocabulary file, in the order of their ids.

    Args:
        contents: the file's bytes; quotes around a piece may be missing.
        path: the file's name, for messages.

    Raises:
        UserError: the file is no such vocabulary, or damaged.
    """
    try:
        lines = contents.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}: not UTF-8 at byte {error.start}; this is no vocabulary file"
        ) from error
    if lines[-1] == "":
        lines.pop()
    pieces = []
    for number, line in enumerate(lines, start=1):
        piece = line.rstrip()
        if len(piece) > 1 and piece[0] == piece[-1] and piece[0] in "'\"":
            piece = piece[1:-1]
        if not piece:
            raise UserError(f"{path}:{number}: an empty piece; the file is damaged")
        pieces.append(piece)
    reserved = tuple(piece.rstrip("_") + "_" for piece in pieces[:2])
    if reserved != RESERVED_PIECES:
        raise UserError(
            f"{path}: the first two lines must be '<pad>_' and '<EOS>_' (ids 0 and 1)"
        )
    if missing := sorted(ESCAPE_CHARACTERS - set(pieces)):
        raise UserError(
            f"{path}: the pieces {' '.join(missing)} are missing, without which not "
            "every text can be written; the file is damaged or cut short"
        )
    return pieces
