"""Loading of tokenizers; the suffix of the vocabulary file selects the class."""

from __future__ import annotations

import os
from pathlib import Path

from t2t_repro.system.atomic_file import reject_pointer
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.tokenizer import (
    MARIAN_SUFFIX,
    SENTENCEPIECE_SUFFIX,
    SEPARATE_SUFFIX,
    WORD_PIECE_SUFFIX,
    Tokenizer,
)


def load_tokenizer(path: str | os.PathLike[str]) -> Tokenizer:
    """Loads the tokenizer of a vocabulary file.

    Args:
        path: A file `*.model` (SentencePiece), `*.subwords` (tensor2tensor's word
            pieces), `*.sides` (one of these for each side) or `*.marian` (both sides of
            an imported Marian model), or a directory that contains exactly one such
            file.

    Raises:
        UserError: The file is missing or damaged, or the directory contains several
            vocabulary files.
    """
    path = _vocabulary_file(os.fspath(path))
    try:
        contents = Path(path).read_bytes()
    except OSError as error:
        reason = error.strerror
        raise UserError(f"{path}: cannot read the vocabulary: {reason}") from error
    reject_pointer(contents, path)
    if not contents:
        raise UserError(f"{path}: the vocabulary file is empty; build it again")
    # Local imports, because each module imports a library that the others do not need.
    if path.endswith(MARIAN_SUFFIX):
        from t2t_repro.tokenizers.marian_tokenizer import MarianTokenizer

        return MarianTokenizer(contents, path)
    if path.endswith(SEPARATE_SUFFIX):
        from t2t_repro.tokenizers.separate_tokenizer import SeparateTokenizer

        return SeparateTokenizer(contents, path)
    if path.endswith(SENTENCEPIECE_SUFFIX):
        from t2t_repro.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer

        return SentencePieceTokenizer(contents, path)
    from t2t_repro.tokenizers.word_piece_tokenizer import WordPieceTokenizer

    return WordPieceTokenizer(contents, path)


def _vocabulary_file(path: str) -> str:
    """Returns `path`, or the only vocabulary file in it if it is a directory."""
    suffixes = (SENTENCEPIECE_SUFFIX, WORD_PIECE_SUFFIX, SEPARATE_SUFFIX, MARIAN_SUFFIX)
    kinds = " or ".join(f"*{suffix}" for suffix in suffixes)
    if os.path.isdir(path):
        names = sorted(
            name
            for name in os.listdir(path)
            if name.endswith(suffixes) and not name.startswith(".")
        )
        if len(names) != 1:
            listing = ", ".join(names) or "none"
            raise UserError(
                f"{path}: expected exactly one vocabulary file ({kinds}), "
                f"found {listing}; give the path of the file"
            )
        return os.path.join(path, names[0])
    if not os.path.exists(path):
        raise UserError(f"{path}: no such vocabulary file; check the path")
    if not path.endswith(suffixes):
        raise UserError(f"{path}: the name of a vocabulary file must be {kinds}")
    return path
