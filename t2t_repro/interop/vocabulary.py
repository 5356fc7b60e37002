"""Vocabularies of other programs and their SentencePiece models."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from t2t_repro.interop.formats.text import reject_pointer
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.marian_tokenizer import MarianTokenizer, model_pieces
from t2t_repro.tokenizers.sentencepiece_tokenizer import read_model

END, UNKNOWN, PADDING = "</s>", "<unk>", "<pad>"


@dataclass(frozen=True)
class Vocabulary:
    """Vocabulary of one side.

    Attributes:
        file: Path of the vocabulary file, for messages.
        pieces: Pieces in the order of the other program's embedding rows.
        model: SentencePiece model with the same ids; None if it is a separate file.
        added: Pieces that are cut out of texts before SentencePiece, each with
            whether decoding omits it.
    """

    file: Path
    pieces: tuple[str, ...]
    model: bytes | None = None
    added: Mapping[str, bool] = field(default_factory=dict)

    @property
    def order(self) -> list[int]:
        """Rows in this package's order: </s>, then all other pieces except <pad>."""
        end = self.pieces.index(END)
        others = (END, PADDING)
        return [end, *(i for i, piece in enumerate(self.pieces) if piece not in others)]

    @property
    def ours(self) -> list[str]:
        """Pieces in this package's order: <pad>, </s>, then all others."""
        return [PADDING, *(self.pieces[row] for row in self.order)]


@dataclass(frozen=True)
class Vocabularies:
    """Vocabularies of both sides.

    Attributes:
        source: Vocabulary of the source.
        target: Vocabulary of the target; None if both sides share one.
    """

    source: Vocabulary
    target: Vocabulary | None

    @property
    def sides(self) -> tuple[Vocabulary, Vocabulary]:
        """Source and target vocabulary, the same object if they are shared."""
        return self.source, self.target or self.source

    def count_known_pieces(
        self, models: Sequence[bytes | None]
    ) -> dict[str, tuple[int, int]]:
        """Counts the SentencePiece pieces that occur in the vocabularies.

        Args:
            models: Serialized SentencePiece models of source and target; None if a side
                lacks one.

        Returns:
            For "source" and "target", the number of pieces in the vocabulary and the
            total number of pieces.

        Raises:
            UserError: A vocabulary lacks more than half of the pieces.
        """
        counts = {}
        names = ("source", "target")
        for side, model, own in zip(names, models, self.sides, strict=True):
            if model is None or own.model is not None:
                continue
            pieces = model_pieces(model, side)
            known = len({*pieces} & {*own.pieces})
            if 2 * known < len(pieces):
                raise UserError(
                    f"{own.file} contains {known:,} of the {len(pieces):,} pieces of "
                    f"{side}.spm; the files belong to different models, or source and "
                    "target are exchanged"
                )
            counts[side] = known, len(pieces)
        return counts

    def tokenizer(
        self,
        models: tuple[bytes | None, bytes | None],
        source_start: str | None = None,
        labels: bool = True,
    ) -> MarianTokenizer:
        """Returns the tokenizer; see `MarianTokenizer.from_pieces`."""
        return MarianTokenizer.from_pieces(
            *models,
            self.source.ours,
            None if self.target is None else self.target.ours,
            source_start=source_start,
            labels=labels,
            added=self.source.added,
        )


def order_vocabulary(file: Path, ids: Mapping[str, Any]) -> Vocabulary:
    """Returns the vocabulary with its pieces in the order of their ids.

    Args:
        file: Path of the vocabulary file, for messages.
        ids: Id of each piece, counted from 0.

    Raises:
        UserError: An id is missing, repeated or invalid, or </s> or <unk> is missing.
    """
    by_id: dict[int, str] = {}
    for piece, number in ids.items():
        text = str(number) if isinstance(number, str | int) else ""
        if not (isinstance(piece, str) and text.isdecimal() and len(text) < 10):
            raise UserError(
                f"{file}: {piece!r:.40} has the invalid id {number!r:.40}; download "
                "the file again"
            )
        if int(text) in by_id:
            raise UserError(
                f"{file}: two pieces have the id {number}; download the file again"
            )
        by_id[int(text)] = piece
    if sorted(by_id) != [*range(len(by_id))]:
        raise UserError(
            f"{file}: the ids are not 0 to {len(by_id) - 1:,}; download the file again"
        )
    pieces = tuple(by_id[number] for number in range(len(by_id)))
    for needed in (END, UNKNOWN):
        if needed not in pieces:
            raise UserError(
                f"{file} lacks the required piece {needed}; download the file again"
            )
    return Vocabulary(file, pieces)


def piece_vocabulary(file: Path) -> Vocabulary:
    """Returns the vocabulary of a SentencePiece model, with the model's own ids.

    Raises:
        UserError: The file is missing or damaged, or the model lacks </s>.
    """
    model = read_piece_model(file)
    library, _ = read_model(model, str(file))
    if library.eos_id() < 0:
        raise UserError(
            f"{file} lacks a piece for the end of sentence (--eos_id=-1); use the "
            "vocabulary that Marian was trained with"
        )
    return Vocabulary(file, name_pieces(model, str(file)), model)


def name_pieces(model: bytes, file: str) -> tuple[str, ...]:
    """Returns a unique name of each piece of a SentencePiece model with </s>.

    Args:
        model: Contents of the model file.
        file: Path of the file, for messages.
    """
    library, proto = read_model(model, file)
    # A space distinguishes other special pieces, which no text contains, from these.
    names = [each.piece for each in proto.pieces]
    pieces = [f"{p} listed" if p in (END, UNKNOWN, PADDING) else p for p in names]
    pieces[library.eos_id()], pieces[library.unk_id()] = END, UNKNOWN
    return tuple(pieces)


def read_piece_model(path: Path) -> bytes:
    """Returns the contents of a SentencePiece model file.

    Raises:
        UserError: The file is missing or damaged.
    """
    reject_pointer(path)
    try:
        contents = path.read_bytes()
    except OSError as error:
        raise UserError(
            f"{path}: {error.strerror}; the tokenizer needs this SentencePiece model; "
            "copy it from the download of the model"
        ) from None
    model_pieces(contents, str(path))
    return contents
