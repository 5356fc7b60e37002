"""Tokenizer of Marian models: SentencePiece pieces numbered by a vocabulary."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.sentencepiece_tokenizer import SharedModel, read_model
from t2t_repro.tokenizers.tokenizer import LABEL, MARIAN_SUFFIX, Tokenizer

UNKNOWN_PIECE = "<unk>"
SPECIAL_PIECES = ("<pad>", "</s>")
"""The first two pieces of every vocabulary: padding and end of sentence."""

_FORMAT = "t2t_repro Marian vocabulary 1"
_FIELDS = {"source_pieces", "target_pieces", "source_model", "target_model"}
_DEFAULTS: dict[str, Any] = {"labels": True, "source_start": None, "added": {}}
_WORD_START = "\u2581"
# Separates the parts of a text in the graph. Unicode reserves this character for
# programs, so texts do not contain it.
_CUT = "\uffff"


class MarianSide(Tokenizer):
    """Tokenizer of one side: a SentencePiece model and its vocabulary.

    Args:
        contents: Bytes of the vocabulary file of both sides.
        path: Path of the file; its base name becomes `file_name`.
        encoded_model: The SentencePiece model in base64; None: texts consist of
            pieces, separated by spaces.
        pieces: The piece of each id.
        has_labels: Whether a text may begin with a language label.
        start: Piece to insert before every text; None: no piece.
        added: Pieces that are cut out of texts before SentencePiece, each with
            whether decoding omits it.

    Attributes:
        piece_model: Contents of the SentencePiece model; None if there is none.
        added: Pieces that are cut out of texts before SentencePiece, each with
            whether decoding omits it.

    Raises:
        UserError: The SentencePiece model is damaged.
    """

    def __init__(
        self,
        contents: bytes,
        path: str,
        encoded_model: object,
        pieces: list[str],
        has_labels: bool = True,
        start: str | None = None,
        added: Mapping[str, bool] | None = None,
    ) -> None:
        self.piece_model = model = _decode_model(encoded_model, path)
        super().__init__(contents, os.path.basename(path), len(pieces))
        self.unknown_id = pieces.index(UNKNOWN_PIECE)
        self.has_labels = has_labels
        self.added = added = added or {}
        # RE2 prefers the first alternative that matches, Transformers the longest one.
        longest_first = sorted(added, key=len, reverse=True)
        self._whole = "|".join(
            [*[f"^{LABEL}"] * has_labels, *map(re.escape, longest_first)]
        )
        self._start = None if start is None else pieces.index(start)
        self._model = None
        if model is not None:
            self._model = SharedModel(model, hashlib.sha256(model).hexdigest())
        self._pieces = self._spellings = tf.constant(pieces)
        if added:
            words = {each: "" if added[each] else _WORD_START + each for each in added}
            self._spellings = tf.constant([words.get(each, each) for each in pieces])
        # The table omits the special pieces, so that no text is encoded as one.
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
        split = self._tokenize_around_whole if self._whole else self._split
        pieces = split(text)
        ids = pieces.with_values(self._ids.lookup(pieces.values))
        if self._start is None:
            return ids
        start = tf.fill([ids.nrows(), 1], tf.constant(self._start, tf.int32))
        return tf.concat([tf.RaggedTensor.from_tensor(start), ids], axis=1)

    def _split(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Splits string (batch,) into pieces."""
        if self._model is None:
            return tf.strings.split(text)
        return self._model.tokenize(text, tf.string)

    def _tokenize_around_whole(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Splits string (batch,) into pieces; labels and added pieces stay whole."""
        cut = tf.strings.regex_replace(text, f"({self._whole})", f"{_CUT}\\1{_CUT}")
        parts = tf.strings.split(cut, _CUT)
        is_whole = tf.strings.regex_full_match(parts.values, self._whole)
        pieces = tf.concat(
            [
                tf.RaggedTensor.from_row_lengths(
                    tf.boolean_mask(parts.values, is_whole), tf.cast(is_whole, tf.int64)
                ),
                self._split(tf.where(is_whole, "", parts.values)),
            ],
            axis=1,
        )
        # (parts, None) -> (batch, None)
        row_splits = tf.gather(pieces.row_splits, parts.row_splits)
        return tf.RaggedTensor.from_row_splits(pieces.values, row_splits)

    def _to_text(self, pieces: tf.RaggedTensor) -> tf.Tensor:
        spelled = pieces.with_values(tf.gather(self._spellings, pieces.values))
        if self._model is None:
            return tf.strings.reduce_join(spelled, axis=1, separator=" ")
        text = self._model.detokenize(spelled)
        # `detokenize` keeps the word mark of pieces that are not in this side's
        # SentencePiece model.
        return tf.strings.strip(tf.strings.regex_replace(text, _WORD_START, " "))


class MarianTokenizer(MarianSide):
    """Tokenizer with a separate vocabulary for the pieces of SentencePiece.

    A piece that is not in the vocabulary becomes `<unk>`. A language label such as
    `>>deu<<` at the beginning of a text is a single piece, unless the file's `labels`
    is false. Pieces in `added` are single pieces anywhere in a text. The object encodes
    the source; `target` has its own SentencePiece model and may have its own
    vocabulary. The `*.marian` file is JSON and contains both sides. Imported models of
    OpenNMT-tf use the same format; if the file has `source_start`, this piece is
    inserted before every source. Without SentencePiece models, as for subword-nmt,
    texts consist of pieces that are separated by spaces.

    Source: Marian's data/default_vocab.cpp and Transformers'
    models/marian/tokenization_marian.py.

    Args:
        contents: Bytes of the vocabulary file.
        path: Path of the file; its base name becomes `file_name`.

    Raises:
        UserError: The file is damaged or has another format.
    """

    def __init__(self, contents: bytes, path: str | os.PathLike[str]) -> None:
        path = os.fspath(path)
        fields = _parse(contents, path)
        source = _check_pieces(fields["source_pieces"], f"{path}: source_pieces")
        has_labels, start = bool(fields["labels"]), fields["source_start"]
        self.source_start = start
        added = fields["added"]
        if start not in (None, *source[len(SPECIAL_PIECES) :]):
            raise UserError(
                f"{path}: source_start must be one of the source_pieces after "
                f"{SPECIAL_PIECES[-1]}; import the model again"
            )
        if not (isinstance(added, dict) and added.keys() <= {*source} - {""}):
            raise UserError(
                f"{path}: added must contain some of the source_pieces; import the "
                "model again"
            )
        model = fields["source_model"]
        super().__init__(contents, path, model, source, has_labels, start, added)
        labels = [each for each in source if re.fullmatch(LABEL, each)]
        self._known_labels = tuple(labels) if has_labels else None
        target, self._is_shared = source, fields["target_pieces"] is None
        if not self._is_shared:
            target = _check_pieces(fields["target_pieces"], f"{path}: target_pieces")
        model = fields["target_model"]
        self._target = MarianSide(
            contents, path, model, target, has_labels, added=added
        )

    @classmethod
    def from_pieces(
        cls,
        source_model: bytes | None,
        target_model: bytes | None,
        source_pieces: Sequence[str],
        target_pieces: Sequence[str] | None = None,
        labels: bool = True,
        source_start: str | None = None,
        added: Mapping[str, bool] | None = None,
    ) -> MarianTokenizer:
        """Creates a tokenizer from SentencePiece models and vocabularies.

        Args:
            source_model: Bytes of the source's SentencePiece model; None: texts consist
                of pieces, separated by spaces.
            target_model: Bytes of the target's SentencePiece model, or None.
            source_pieces: The piece of each source id, beginning with
                `SPECIAL_PIECES`.
            target_pieces: The piece of each target id; None: both sides share
                `source_pieces`.
            labels: Whether a text may begin with a language label.
            source_start: Piece to insert before every source; None: no piece.
            added: Pieces that are cut out of texts before SentencePiece, each with
                whether decoding omits it. The source vocabulary contains them.

        Raises:
            UserError: A model is damaged, or pieces are invalid, repeated or missing.
        """
        fields: dict[str, object] = {
            "format": _FORMAT,
            "source_pieces": list(source_pieces),
            "target_pieces": None if target_pieces is None else list(target_pieces),
            "source_model": _encode_model(source_model),
            "target_model": _encode_model(target_model),
        }
        fields |= {} if labels else {"labels": False}
        fields |= {} if source_start is None else {"source_start": source_start}
        fields |= {"added": dict(added)} if added else {}
        text = json.dumps(fields, ensure_ascii=False, indent=0) + "\n"
        return cls(text.encode(), f"vocab{MARIAN_SUFFIX}")

    @property
    def labels(self) -> tuple[str, ...]:
        """Language labels in the vocabulary; empty unless the model needs them."""
        return self._known_labels or ()

    def notes(self, texts: Sequence[str]) -> list[str]:
        """Names unknown language labels, and texts that are not split into pieces."""
        if self._model is None and not any("@@" in text for text in texts):
            return [
                "no text contains the mark @@ of subword-nmt, but this model reads "
                "pieces; run its preprocess.sh first"
            ]
        known = self._known_labels
        if known is None:
            return []
        found = (re.match(LABEL, text.lstrip()) for text in texts)
        labels = {
            (match[0], text[:1].isspace())
            for match, text in zip(found, texts, strict=True)
            if match
        }
        known_text = ", ".join(known[:8]) + (", ..." if len(known) > 8 else "")
        return [
            f"the label {label} follows a space and is read as text; remove the space"
            if spaced
            else f"the label {label} is not in the vocabulary and is read as "
            f"{UNKNOWN_PIECE}; labels: {known_text or 'none'}"
            for label, spaced in sorted(labels)
            if spaced or label not in known
        ]

    @property
    def target(self) -> MarianSide:
        """The tokenizer of the target side."""
        return self._target

    @property
    def target_vocab_size(self) -> int | None:
        """Size of the target vocabulary; None: both sides share a vocabulary."""
        return None if self._is_shared else self._target.vocab_size


def _parse(contents: bytes, path: str) -> dict[str, Any]:
    """Parses the vocabulary file and checks its format."""
    try:
        fields: dict[str, Any] = _DEFAULTS | json.loads(contents)
        if fields["format"] != _FORMAT or not fields.keys() >= _FIELDS:
            raise ValueError("another format")
        return fields
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise UserError(
            f"{path}: not a Marian vocabulary, or damaged; import the model again"
        ) from error


def _check_pieces(pieces: object, where: str) -> list[str]:
    """Returns the pieces; raises UserError unless they form a valid vocabulary."""
    if not isinstance(pieces, list) or not all(isinstance(p, str) for p in pieces):
        fault = "is not a list of pieces"
    elif re.search("[\ud800-\udfff]", "".join(pieces)):
        fault = "contains half of a surrogate pair"
    elif tuple(pieces[: len(SPECIAL_PIECES)]) != SPECIAL_PIECES:
        fault = f"does not begin with {' and '.join(SPECIAL_PIECES)}"
    elif UNKNOWN_PIECE not in pieces:
        fault = f"lacks {UNKNOWN_PIECE}"
    elif len(set(pieces)) != len(pieces):
        duplicate = next(piece for piece in pieces if pieces.count(piece) > 1)
        fault = f"has the piece {duplicate!r} twice"
    else:
        return pieces
    raise UserError(f"{where} {fault}; import the model again")


def _encode_model(model: bytes | None) -> str | None:
    return None if model is None else base64.b64encode(model).decode("ascii")


def _decode_model(encoded: object, path: str) -> bytes | None:
    """Decodes a SentencePiece model from base64; raises UserError if it is damaged."""
    if encoded is None:
        return None
    try:
        model = base64.b64decode(str(encoded), validate=True)
    except ValueError:  # binascii.Error is one.
        model = b""
    model_pieces(model, path)
    return model


def model_pieces(model: bytes, path: str) -> list[str]:
    """Returns the normal pieces of a SentencePiece model, without special pieces.

    Raises UserError with `path` in the message if the model is damaged.
    """
    _, proto = read_model(
        model, f"{path}: a SentencePiece model is damaged; get the model again"
    )
    return [piece.piece for piece in proto.pieces if piece.type == piece.NORMAL]
