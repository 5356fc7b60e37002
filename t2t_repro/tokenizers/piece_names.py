"""What a vocabulary calls each of its pieces."""

import tempfile
from pathlib import Path

from t2t_repro.tokenizers.tokenizer import (
    MARIAN_SUFFIX,
    SENTENCEPIECE_SUFFIX,
    Tokenizer,
)


def piece_names(tokenizer: Tokenizer) -> list[str]:
    """Returns the name of every id, as its vocabulary file spells it.

    A name is not what the piece adds to a text: SentencePiece marks the beginning of
    a word with U+2581, tensor2tensor the end of one with `_`. tensor2tensor's files may
    hold a name twice; then the later id is the one in use.
    """
    if tokenizer.file_name.endswith(MARIAN_SUFFIX):
        from t2t_repro.tokenizers.marian_tokenizer import MarianSide

        assert isinstance(tokenizer, MarianSide)
        return tokenizer.pieces
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save(folder)
        contents = (Path(folder) / tokenizer.file_name).read_bytes()
    # Imported here: each brings a library that the others do not need.
    if tokenizer.file_name.endswith(SENTENCEPIECE_SUFFIX):
        from t2t_repro.tokenizers.sentencepiece_tokenizer import model_proto

        return [piece.piece for piece in model_proto(contents).pieces]
    from t2t_repro.tokenizers.word_pieces import from_file

    return from_file(contents, tokenizer.file_name)
