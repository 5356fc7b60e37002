"""A model that Marian trained, by our names, from whichever folder it came."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from t2t_repro.layers.embedding import RULED_OUT
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.marian_tokenizer import model_pieces

END, UNKNOWN, PADDING = "</s>", "<unk>", "<pad>"

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Vocabulary:
    """The pieces of one side, in the order of the rows of the folder's tables."""

    file: Path
    pieces: tuple[str, ...]

    @property
    def order(self) -> list[int]:
        """The rows behind ours, which begins with padding: the end mark, the rest."""
        end = self.pieces.index(END)
        others = (END, PADDING)
        return [end, *(i for i, piece in enumerate(self.pieces) if piece not in others)]

    @property
    def ours(self) -> list[str]:
        """The pieces in our order, padding first."""
        return [PADDING, *(self.pieces[row] for row in self.order)]


def vocabulary(file: Path, ids: Mapping[Any, Any], rows: int) -> Vocabulary:
    """Puts pieces in the order of their ids, from 0 to `rows` - 1.

    UserError: not every row of the table has a piece, two pieces share one, or there
    is no end mark or no piece for what is unknown.
    """
    named: dict[int, str] = {}
    for piece, number in ids.items():
        text = str(number) if isinstance(number, str | int) else ""
        if not (isinstance(piece, str) and text.isdecimal() and len(text) < 10):
            raise UserError(f"{file}: {piece!r:.40}: {number!r:.40} is no piece's id")
        if int(number) in named:
            raise UserError(f"{file}: two pieces have the id {number}; get it again")
        named[int(number)] = piece
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


@dataclass(frozen=True)
class MarianModel:
    """What is needed of a folder, checked, and in its own order of pieces."""

    program: str  # Whose files they are: "Marian" or "Transformers".
    weights_file: Path
    weights: Arrays  # By our names, matrices (in, out); tables by `tables`.
    # "input", "target", "softmax", (V, d); the same array where they are tied.
    tables: Arrays
    softmax_bias: np.ndarray  # (V,)
    hparams: dict[str, Any]  # What they are of the model, by our names.
    search: dict[str, Any]  # The folder's settings of its search, by its own names.
    source: Vocabulary
    target: Vocabulary | None  # None: the source's.
    source_model: bytes  # SentencePiece models.
    target_model: bytes
    languages: tuple[str | None, str | None] = (None, None)
    used: int = 0  # Arrays of the file that became the model.
    unused: dict[str, list[str]] = field(default_factory=dict)  # The others, by kind.

    def tying(self) -> dict[str, bool]:
        """Returns which tables are one, as hyper-parameters."""
        source, target, softmax = (
            self.tables[side] for side in ("input", "target", "softmax")
        )
        shared = source is target and target is softmax
        return {
            "share_embeddings": shared,
            "tie_target": not shared and target is softmax,
        }

    def pieces_known(self) -> dict[str, tuple[int, int]]:
        """Does as the function `pieces_known`, for both sides."""
        return pieces_known(
            (self.source_model, self.source),
            (self.target_model, self.target or self.source),
        )

    def variables(self) -> Arrays:
        """Returns every variable of our model by name, rows in our order."""
        target = self.target or self.source
        tying = self.tying()
        softmax = in_order(self.tables["softmax"], target.order)
        name = "embedding" if tying["share_embeddings"] else "softmax"
        found = {f"{name}/table": softmax}
        bias = in_order(self.softmax_bias, target.order)
        bias[0] = RULED_OUT
        found[f"{name}/bias"] = bias
        if not tying["share_embeddings"]:
            order = self.source.order
            found["input_embedding/table"] = in_order(self.tables["input"], order)
            if not tying["tie_target"]:
                table = in_order(self.tables["target"], target.order)
                found["target_embedding/table"] = table
        return found | self.weights


def pieces_known(
    source: tuple[bytes, Vocabulary], target: tuple[bytes, Vocabulary]
) -> dict[str, tuple[int, int]]:
    """Counts the pieces of text that a side's SentencePiece model gives.

    Returns by side: how many its vocabulary has, and of how many. UserError: it lacks
    most, so that the two were not made for each other.
    """
    found = {}
    for side, (model, own) in (("source", source), ("target", target)):
        pieces = model_pieces(model, side)
        known = len({*pieces} & {*own.pieces})
        if 2 * known < len(pieces):
            raise UserError(
                f"{own.file} has {known:,} of the {len(pieces):,} pieces of "
                f"{side}.spm; the files are of different models, or of the other side"
            )
        found[side] = known, len(pieces)
    return found


def in_order(rows: np.ndarray, order: Sequence[int]) -> np.ndarray:
    """Takes rows in an order, behind one of zeros."""
    return np.concatenate([np.zeros_like(rows[:1]), rows[order]])


class Weights:
    """The arrays of a file, each of which is taken once.

    Args:
        file: for messages.
        arrays: float, by the file's names.
    """

    def __init__(self, file: Path, arrays: Mapping[str, np.ndarray]) -> None:
        self.file = file
        self.left = dict(arrays)
        self.used = 0

    def take(self, name: str, *shape: int | None) -> np.ndarray:
        """Returns an array that must be there, of a shape (None: any size).

        UserError: it is missing, or of another shape, or not all numbers are finite.
        """
        if name not in self.left:
            raise UserError(
                f"{self.file} has no {name}; it is damaged, or not of the model that "
                "its settings describe"
            )
        found = self.left.pop(name)
        if len(found.shape) != len(shape) or any(
            wanted not in (None, size)
            for wanted, size in zip(shape, found.shape, strict=True)
        ):
            raise UserError(
                f"{self.file}: {name} has the shape {found.shape}, but the settings "
                f"ask for {tuple('any' if n is None else n for n in shape)}; the files "
                "are of different models"
            )
        if not np.isfinite(found).all():
            raise UserError(f"{self.file}: {name} holds what is no number")
        self.used += 1
        return found

    def refuse_left(self) -> None:
        """Raises UserError that names an array which nothing has taken."""
        if self.left:
            raise UserError(
                f"{self.file}: {sorted(self.left)[0]} is no part of a Transformer that "
                "is supported here"
            )

    def take_if_there(self, name: str, *shape: int | None) -> np.ndarray | None:
        """Returns an array, or None; UserError as `take`."""
        return self.take(name, *shape) if name in self.left else None


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
