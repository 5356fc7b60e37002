r"""Rules and vocabulary file of tensor2tensor's invertible word pieces.

A text is split between alphanumeric and other characters. A single space between two
alphanumeric words is dropped, because decoding restores it. Each word gets a final `_`
and is split into the longest pieces of the vocabulary. Inside a word, `\` is escaped as
`\\`, `_` as `\u`, and a character without a piece as its decimal code point, such as
`\233;`. Therefore every text can be encoded without an unknown token, and decoding
restores it exactly.

Source: tensor2tensor data_generators/tokenizer.py:encode, decode and
text_encoder.py:SubwordTextEncoder.
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Iterable

from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.plain_tokenizer import is_alphanumeric, unquote

# Pieces of ids 0 and 1 in every vocabulary. Some of tensor2tensor's files omit the `_`.
RESERVED_PIECES = ("<pad>_", "<EOS>_")
# Characters used in escapes; the vocabulary must contain each one as a piece.
ESCAPE_CHARACTERS = frozenset("\\_u;0123456789")


@functools.cache
def class_boundaries() -> tuple[int, ...]:
    """Returns the code points where ranges of alphanumeric characters begin and end."""
    flags = [is_alphanumeric(chr(code)) for code in range(sys.maxunicode + 1)]
    return tuple(
        code
        for code, (before, here) in enumerate(itertools.pairwise([False, *flags]))
        if before != here
    )


def format_file(pieces: Iterable[str]) -> bytes:
    """Formats a vocabulary file: one piece per line, in single quotes."""
    return "".join(f"'{piece}'\n" for piece in pieces).encode()


def parse_file(contents: bytes, path: str) -> list[str]:
    """Parses a vocabulary file and returns its pieces in the order of their ids.

    Args:
        contents: Bytes of the file; the quotes around a piece are optional.
        path: Name of the file in error messages.

    Raises:
        UserError: The file is damaged or has another format.
    """
    try:
        lines = contents.decode("utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}: not UTF-8 at byte {error.start}; this is not a vocabulary file"
        ) from error
    pieces = []
    for number, line in enumerate(lines, start=1):
        piece = unquote(line)
        if not piece:
            raise UserError(f"{path}:{number}: empty piece; the file is damaged")
        if "\0" in piece:
            raise UserError(f"{path}:{number}: a NUL character; the file is damaged")
        pieces.append(piece)
    reserved = tuple(piece.rstrip("_") + "_" for piece in pieces[:2])
    if reserved != RESERVED_PIECES:
        raise UserError(
            f"{path}: the first two lines must be '<pad>_' and '<EOS>_' (ids 0 and 1); "
            "this is not a vocabulary of word pieces"
        )
    if missing := sorted(ESCAPE_CHARACTERS - set(pieces)):
        raise UserError(
            f"{path}: pieces {' '.join(missing)} of escapes are missing; the file is "
            "damaged or truncated"
        )
    return pieces
