"""Vocabularies of other programs, and the SentencePiece models that belong to them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.marian_tokenizer import MarianTokenizer, model_pieces

END, UNKNOWN, PADDING = "</s>", "<unk>", "<pad>"


@dataclass(frozen=True)
class Vocabulary:
    """The pieces of one side, in the order of the rows of the other program's table."""

    file: Path
    pieces: tuple[str, ...]

    @property
    def order(self) -> list[int]:
        """Its rows in our order, without padding: the end mark, then the others."""
        end = self.pieces.index(END)
        others = (END, PADDING)
        return [end, *(i for i, piece in enumerate(self.pieces) if piece not in others)]

    @property
    def ours(self) -> list[str]:
        """The pieces in our order, padding first."""
        return [PADDING, *(self.pieces[row] for row in self.order)]


@dataclass(frozen=True)
class Vocabularies:
    """The vocabularies of both sides.

    Attributes:
        source: The source's.
        target: The target's own, None if it is the source's.
    """

    source: Vocabulary
    target: Vocabulary | None

    @property
    def sides(self) -> tuple[Vocabulary, Vocabulary]:
        """The vocabulary of the source and that of the target."""
        return self.source, self.target or self.source

    def pieces_known(self, models: Sequence[bytes]) -> dict[str, tuple[int, int]]:
        """Counts the pieces that each side's SentencePiece model gives.

        Returns by side: how many its vocabulary has, and of how many. Raises UserError
        if it lacks most, so that the two were not made for each other.
        """
        counts = {}
        names = ("source", "target")
        for side, model, own in zip(names, models, self.sides, strict=True):
            pieces = model_pieces(model, side)
            known = len({*pieces} & {*own.pieces})
            if 2 * known < len(pieces):
                raise UserError(
                    f"{own.file} has {known:,} of the {len(pieces):,} pieces of "
                    f"{side}.spm; the files are of different models, or of the other "
                    "side"
                )
            counts[side] = known, len(pieces)
        return counts

    def tokenizer(
        self,
        models: tuple[bytes, bytes],
        source_start: str | None = None,
        labels: bool = True,
    ) -> MarianTokenizer:
        """Returns our tokenizer; the arguments are those of `from_pieces`."""
        return MarianTokenizer.from_pieces(
            *models,
            self.source.ours,
            None if self.target is None else self.target.ours,
            source_start=source_start,
            labels=labels,
        )


def ordered_vocabulary(file: Path, ids: Mapping[str, Any], rows: int) -> Vocabulary:
    """Puts pieces in the order of their ids, from 0 to `rows` - 1.

    Raises:
        UserError: A row of the table has no piece, two pieces share one, or there is no
            end mark or no piece for unknown text.
    """
    named: dict[int, str] = {}
    for piece, number in ids.items():
        text = str(number) if isinstance(number, str | int) else ""
        if not (isinstance(piece, str) and text.isdecimal() and len(text) < 10):
            raise UserError(f"{file}: {piece!r:.40}: {number!r:.40} is no piece's id")
        if int(text) in named:
            raise UserError(f"{file}: two pieces have the id {number}; get it again")
        named[int(text)] = piece
    if sorted(named) != [*range(rows)]:
        raise UserError(
            f"{file} has {len(named):,} pieces, but the model's table {rows:,} rows; "
            "they belong to different models, or one is cut off"
        )
    pieces = tuple(named[number] for number in range(rows))
    for needed in (END, UNKNOWN):
        if needed not in pieces:
            raise UserError(f"{file} has no piece {needed}, so that no text could end")
    return Vocabulary(file, pieces)


def read_piece_model(path: Path) -> bytes:
    """Returns the bytes of a SentencePiece model; UserError if it is damaged."""
    try:
        contents = path.read_bytes()
    except OSError as error:
        raise UserError(
            f"{path}: {error.strerror}; the text is cut by a SentencePiece model, "
            "which the download has beside the weights"
        ) from None
    model_pieces(contents, str(path))
    return contents
