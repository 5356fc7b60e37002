"""The text of Marian's models: a SentencePiece model a side, and a vocabulary apart."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.sentencepiece_tokenizer import SharedModel, read_model
from t2t_repro.tokenizers.tokenizer import MARIAN_SUFFIX, Tokenizer

UNKNOWN_PIECE = "<unk>"
SPECIAL_PIECES = ("<pad>", "</s>")
"""The first two pieces of every vocabulary: padding, and the end of a sentence."""

_FORMAT = "t2t_repro Marian vocabulary 1"
_FIELDS = {"source_pieces", "target_pieces", "source_model", "target_model"}
_DEFAULTS = {"labels": True, "source_start": None}
# The language to translate into, as multilingual models are told it.
_LABEL = r"^>>[^<>\s]+<<"
_WORD_START = "\u2581"


class MarianSide(Tokenizer):
    """One side: a SentencePiece model, which knows strings, and what numbers them.

    `has_labels` says whether a text may begin with one; `start` is the id before every
    text, if there is one.
    """

    def __init__(
        self,
        contents: bytes,
        path: str,
        encoded_model: object,
        pieces: list[str],
        has_labels: bool = True,
        start: int | None = None,
    ) -> None:
        model = _checked_model(encoded_model, path)
        super().__init__(contents, os.path.basename(path), len(pieces))
        import tensorflow_text  # as late as keras-nlp, which brings it along

        self.unknown_id = pieces.index(UNKNOWN_PIECE)
        self._has_labels = has_labels
        self._start = start
        self._sentencepiece = tensorflow_text.SentencepieceTokenizer(
            model, out_type=tf.string
        )
        name = hashlib.sha256(model).hexdigest()
        self._sentencepiece._model_resource = SharedModel(model, name)
        self._pieces = tf.constant(pieces)
        # Text never spells a special piece.
        numbers = range(len(SPECIAL_PIECES), len(pieces))
        self._ids = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                [pieces[n] for n in numbers], list(numbers), tf.string, tf.int32
            ),
            default_value=self.unknown_id,
        )

    @property
    def pieces(self) -> list[str]:
        """The piece of each id."""
        return [piece.decode() for piece in self._pieces.numpy()]

    def _to_pieces(self, text: tf.Tensor) -> tf.RaggedTensor:
        cut = self._labelled if self._has_labels else self._sentencepiece.tokenize
        pieces = cut(text)
        ids = pieces.with_values(self._ids.lookup(pieces.values))
        if self._start is None:
            return ids
        start = tf.fill([ids.nrows(), 1], tf.constant(self._start, tf.int32))
        return tf.concat([tf.RaggedTensor.from_tensor(start), ids], axis=1)

    def _labelled(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Cuts string (batch,) into pieces, a label being one."""
        rest = tf.strings.regex_replace(text, _LABEL, "", replace_global=False)
        label_bytes = tf.strings.length(text) - tf.strings.length(rest)
        has_label = label_bytes > 0
        labels = tf.strings.substr(text, tf.zeros_like(label_bytes), label_bytes)
        return tf.concat(
            [
                tf.RaggedTensor.from_row_lengths(
                    tf.boolean_mask(labels, has_label), tf.cast(has_label, tf.int64)
                ),
                self._sentencepiece.tokenize(rest),
            ],
            axis=1,
        )

    def _to_text(self, pieces: tf.RaggedTensor) -> tf.Tensor:
        spelled = pieces.with_values(tf.gather(self._pieces, pieces.values))
        text = self._sentencepiece.detokenize(spelled)
        # Pieces of the other side's model are left as they are by this one.
        return tf.strings.strip(tf.strings.regex_replace(text, _WORD_START, " "))


class MarianTokenizer(MarianSide):
    """Cuts text by SentencePiece, and numbers the pieces by a vocabulary of its own.

    A piece that the vocabulary lacks is `<unk>`; a label such as `>>deu<<` at the very
    beginning is one piece, as it stands, unless the file's `labels` is false. The
    object itself is the source's side, `target` the target's, with another
    SentencePiece model and perhaps another vocabulary. Its file, `*.marian`, is JSON
    that holds all of both sides. Models of OpenNMT-tf have the same kind of text; with
    `source_start` in the file this piece stands before every source.

    Source: Marian's data/default_vocab.cpp and Transformers'
    models/marian/tokenization_marian.py.

    Args:
        contents: the bytes of the vocabulary file.
        path: where they come from; its base name becomes `file_name`.

    Raises:
        UserError: the file is damaged, or no vocabulary of this kind.
    """

    def __init__(self, contents: bytes, path: str | os.PathLike[str]) -> None:
        path = os.fspath(path)
        found = _parsed(contents, path)
        source = _checked_pieces(found["source_pieces"], f"{path}: source_pieces")
        has_labels, start = bool(found["labels"]), found["source_start"]
        if start not in (None, *source):
            raise UserError(f"{path}: source_start is no piece; import the model again")
        super().__init__(
            contents,
            path,
            found["source_model"],
            source,
            has_labels,
            None if start is None else source.index(start),
        )
        target, self._is_shared = source, found["target_pieces"] is None
        if not self._is_shared:
            target = _checked_pieces(found["target_pieces"], f"{path}: target_pieces")
        model = found["target_model"]
        self._target = MarianSide(contents, path, model, target, has_labels)

    @classmethod
    def from_pieces(
        cls,
        source_model: bytes,
        target_model: bytes,
        source_pieces: Sequence[str],
        target_pieces: Sequence[str] | None = None,
        labels: bool = True,
        source_start: str | None = None,
    ) -> MarianTokenizer:
        """Makes a tokenizer of its parts.

        Args:
            source_model: a SentencePiece model, which cuts the text to translate.
            target_model: another, which cuts translations and joins their pieces.
            source_pieces: the piece of each id, the first two `SPECIAL_PIECES`.
            target_pieces: those of the target; None: both sides share a vocabulary.
            labels: whether a text may begin with a label.
            source_start: the piece before every source; None: there is none.

        Raises:
            UserError: a model is damaged, or pieces are wrong, repeated or missing.
        """
        found: dict[str, object] = {
            "format": _FORMAT,
            "source_pieces": list(source_pieces),
            "target_pieces": None if target_pieces is None else list(target_pieces),
            "source_model": base64.b64encode(source_model).decode("ascii"),
            "target_model": base64.b64encode(target_model).decode("ascii"),
        }
        found |= {} if labels else {"labels": False}
        found |= {} if source_start is None else {"source_start": source_start}
        text = json.dumps(found, ensure_ascii=False, indent=0) + "\n"
        return cls(text.encode(), f"vocab{MARIAN_SUFFIX}")

    @property
    def target(self) -> Tokenizer:
        """The target's side."""
        return self._target

    @property
    def target_vocab_size(self) -> int | None:
        """Ids of the target's own vocabulary; None: both sides share one."""
        return None if self._is_shared else self._target.vocab_size


def _parsed(contents: bytes, path: str) -> dict[str, Any]:
    """Reads the file's object."""
    try:
        found: dict[str, Any] = _DEFAULTS | json.loads(contents)
        if found["format"] != _FORMAT or not found.keys() >= _FIELDS:
            raise ValueError("another format")
        return found
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise UserError(
            f"{path}: not a Marian vocabulary, or a damaged one; import the model again"
        ) from error


def _checked_pieces(pieces: object, where: str) -> list[str]:
    """Returns the pieces; UserError unless they are a vocabulary."""
    if not isinstance(pieces, list) or not all(isinstance(p, str) for p in pieces):
        raise UserError(f"{where} is no list of pieces; import the model again")
    if tuple(pieces[: len(SPECIAL_PIECES)]) != SPECIAL_PIECES:
        raise UserError(f"{where} does not begin with {' and '.join(SPECIAL_PIECES)}")
    if UNKNOWN_PIECE not in pieces:
        raise UserError(f"{where} has no {UNKNOWN_PIECE}")
    if len(set(pieces)) != len(pieces):
        twice = next(piece for piece in pieces if pieces.count(piece) > 1)
        raise UserError(f"{where} has the piece {twice!r} twice")
    return pieces


def _checked_model(encoded: object, path: str) -> bytes:
    """Returns the bytes of a SentencePiece model; UserError unless it is one."""
    try:
        model = base64.b64decode(str(encoded), validate=True)
    except binascii.Error:
        model = b""
    model_pieces(model, path)
    return model


def model_pieces(model: bytes, path: str) -> list[str]:
    """Returns the pieces of text that a SentencePiece model gives.

    UserError that names `path`: it is damaged, or none.
    """
    _, proto = read_model(
        model, f"{path}: a SentencePiece model is damaged, or none; get the model again"
    )
    return [piece.piece for piece in proto.pieces if piece.type == piece.NORMAL]
