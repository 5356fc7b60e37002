"""Tokenizer with a vocabulary for each side, which were built from text."""

from __future__ import annotations

import base64
import json
import os

import tensorflow as tf

from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer
from t2t_repro.tokenizers.tokenizer import (
    SENTENCEPIECE_SUFFIX,
    WORD_PIECE_SUFFIX,
    Tokenizer,
)
from t2t_repro.tokenizers.word_piece_tokenizer import WordPieceTokenizer

_FORMAT = "t2t_repro separate vocabularies 1"
_KINDS: dict[str, type[SentencePieceTokenizer] | type[WordPieceTokenizer]] = {
    SENTENCEPIECE_SUFFIX: SentencePieceTokenizer,
    WORD_PIECE_SUFFIX: WordPieceTokenizer,
}


class SeparateTokenizer(Tokenizer):
    """Tokenizer of two vocabularies of the same kind, one for each side.

    The object encodes the source with `source`; `target` encodes the target. The
    `*.sides` file is JSON with the contents of both vocabulary files in base64.

    Args:
        contents: Bytes of the file.
        path: Path of the file; its base name becomes `file_name`.

    Raises:
        UserError: The file or a vocabulary in it is damaged.
    """

    def __init__(self, contents: bytes, path: str | os.PathLike[str]) -> None:
        """Creates the tokenizers of both sides."""
        path = os.fspath(path)
        try:
            fields = json.loads(contents)
            if fields["format"] != _FORMAT:
                raise ValueError("another format")
            kind = fields["kind"]
            sides = [
                _KINDS[kind](
                    base64.b64decode(fields[side], validate=True),
                    f"{path}: {side}{kind}",
                )
                for side in ("source", "target")
            ]
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise UserError(
                f"{path}: not a file of two vocabularies, or damaged; build it again"
            ) from error
        self._source, self._target = sides
        super().__init__(contents, os.path.basename(path), self._source.vocab_size)
        self.unknown_id = self._source.unknown_id

    @property
    def source(self) -> Tokenizer:
        """The tokenizer of the source side."""
        return self._source

    @property
    def target(self) -> Tokenizer:
        """The tokenizer of the target side."""
        return self._target

    @property
    def target_vocab_size(self) -> int:
        """Size of the target vocabulary."""
        return self._target.vocab_size

    @property
    def pieces(self) -> list[str]:
        """The piece of each source id."""
        return self._source.pieces

    def _to_pieces(self, text: tf.Tensor) -> tf.RaggedTensor:
        return self._source._to_pieces(text)

    def _to_text(self, pieces: tf.RaggedTensor) -> tf.Tensor:
        return self._source._to_text(pieces)


def join_vocabularies(source: Tokenizer, target: Tokenizer) -> bytes:
    """Returns the contents of a `*.sides` file.

    Args:
        source: Tokenizer of the source vocabulary.
        target: Tokenizer of the target vocabulary.

    Raises:
        UserError: The vocabularies are not both SentencePiece models, or both word
            pieces.
    """
    kinds = [os.path.splitext(each.file_name)[1] for each in (source, target)]
    if kinds[0] != kinds[1] or kinds[0] not in _KINDS:
        raise UserError(
            f"{source.file_name} and {target.file_name}: the vocabularies of "
            f"both sides must be {' or '.join(f'*{suffix}' for suffix in _KINDS)} files"
        )
    fields = {"format": _FORMAT, "kind": kinds[0]}
    for side, each in (("source", source), ("target", target)):
        fields[side] = base64.b64encode(each.contents).decode("ascii")
    return (json.dumps(fields, indent=0) + "\n").encode()
