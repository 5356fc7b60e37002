"""Every kind of tokenizer, by the name of its vocabulary file."""

from __future__ import annotations

import os
from pathlib import Path

from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.tokenizer import (
    MARIAN_SUFFIX,
    SENTENCEPIECE_SUFFIX,
    WORD_PIECE_SUFFIX,
    Tokenizer,
)


def load_tokenizer(path: str | os.PathLike[str]) -> Tokenizer:
    """Returns the tokenizer of a vocabulary file.

    Args:
        path: a file `*.model` (SentencePiece), `*.subwords` (tensor2tensor's word
            pieces) or `*.marian` (both sides of an imported Marian model), or a
            directory that holds one such file.

    Raises:
        UserError: there is no such file, or more than one, or it is damaged.
    """
    path = _vocabulary_file(os.fspath(path))
    try:
        contents = Path(path).read_bytes()
    except OSError as error:
        reason = error.strerror
        raise UserError(f"{path}: cannot read the vocabulary: {reason}") from error
    if not contents:
        raise UserError(f"{path}: the vocabulary file is empty; build it again")
    # Imported here: each brings a library that the others do not need.
    if path.endswith(MARIAN_SUFFIX):
        from t2t_repro.tokenizers.marian_tokenizer import MarianTokenizer

        return MarianTokenizer(contents, path)
    if path.endswith(SENTENCEPIECE_SUFFIX):
        from t2t_repro.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer

        return SentencePieceTokenizer(contents, path)
    from t2t_repro.tokenizers.word_piece_tokenizer import WordPieceTokenizer

    return WordPieceTokenizer(contents, path)


def _vocabulary_file(path: str) -> str:
    """The vocabulary file that `path`, a file or its directory, stands for."""
    suffixes = (SENTENCEPIECE_SUFFIX, WORD_PIECE_SUFFIX, MARIAN_SUFFIX)
    kinds = " or ".join(f"*{suffix}" for suffix in suffixes)
    if os.path.isdir(path):
        names = sorted(
            name
            for name in os.listdir(path)
            if name.endswith(suffixes) and not name.startswith(".")
        )
        if len(names) != 1:
            found = ", ".join(names) or "none"
            raise UserError(
                f"{path}: expected exactly one vocabulary file ({kinds}), "
                f"found {found}; name the file itself"
            )
        return os.path.join(path, names[0])
    if not os.path.exists(path):
        raise UserError(f"{path}: no such vocabulary file")
    if not path.endswith(suffixes):
        raise UserError(f"{path}: a vocabulary file is named {kinds}")
    return path
