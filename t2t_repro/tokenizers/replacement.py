"""Spelling of a new vocabulary by old pieces, for `train --vocab replace`.

The rows of a trained model's tables belong to the pieces of its vocabulary. In a model
with another vocabulary, common pieces keep their rows, and the others begin with the
mean of the old pieces that spell them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass

from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.marian_tokenizer import MarianSide
from t2t_repro.tokenizers.plain_tokenizer import piece_starts
from t2t_repro.tokenizers.sentencepiece_tokenizer import model_proto
from t2t_repro.tokenizers.tokenizer import EOS_ID, PAD_ID, Tokenizer
from t2t_repro.tokenizers.word_piece_tokenizer import WordPieceTokenizer

_BYTE = re.compile("<0x[0-9A-F]{2}>")


@dataclass(frozen=True)
class Replacement:
    """Spelling of one side of a new vocabulary.

    Attributes:
        spellings: For each new id, the ids of the old pieces that spell its piece; one
            id if the old vocabulary contains the piece.
        kept: Number of pieces that the old vocabulary contains.
    """

    spellings: list[list[int]]
    kept: int


def check_kind(old: Tokenizer, are_word_pieces: bool) -> None:
    """Checks that two vocabularies may have common pieces.

    Args:
        old: Tokenizer of a trained model.
        are_word_pieces: Whether the new vocabulary consists of word pieces.

    Raises:
        UserError: One vocabulary consists of word pieces and the other one does not, or
            the old one is of subword-nmt.
    """
    if isinstance(old.source, WordPieceTokenizer) != are_word_pieces:
        raise UserError(
            "--vocab replace: a SentencePiece vocabulary and one of word pieces have "
            "no pieces in common; use tokenizer=sentencepiece or tokenizer=wordpiece, "
            "as the model of --init_from"
        )
    if isinstance(old, MarianSide) and None in (
        old.piece_model,
        old.target.piece_model,
    ):
        raise UserError(
            "--vocab replace: a vocabulary of subword-nmt cannot be replaced, because "
            "its merges are not part of the model; use --vocab keep"
        )


def spell_vocabulary(old: Tokenizer, new: Tokenizer) -> tuple[Replacement, Replacement]:
    """Spells the source and the target pieces of a vocabulary.

    If both sides of the old vocabulary share their ids, the tokenizer of the side that
    spells a piece with fewer ids is used.

    Args:
        old: Tokenizer of a trained model.
        new: Tokenizer of the new vocabulary.

    Raises:
        UserError: See `check_kind`.
    """
    check_kind(old, isinstance(new.source, WordPieceTokenizer))
    olds, news = (old.source, old.target), (new.source, new.target)
    spell = [_speller(side) for side in olds]
    pairs = (
        [spell, spell] if old.target_vocab_size is None else [[each] for each in spell]
    )
    source, target = (
        _replace(side, spellers, pieces.pieces)
        for side, spellers, pieces in zip(olds, pairs, news, strict=True)
    )
    return source, target


def _replace(
    old: Tokenizer, spellers: list[Callable[[str], list[int]]], pieces: list[str]
) -> Replacement:
    """Spells the pieces of one side; the shortest spelling is used."""
    ids = {piece: number for number, piece in enumerate(old.pieces)}
    spellings = [[PAD_ID], [EOS_ID]]
    for piece in pieces[EOS_ID + 1 :]:
        spelled = [spell(piece) for spell in spellers if piece not in ids]
        spellings.append(min(spelled, key=len) if spelled else [ids[piece]])
    return Replacement(spellings, sum(piece in ids for piece in pieces))


def _speller(side: Tokenizer) -> Callable[[str], list[int]]:
    """Returns the function that spells a piece that a vocabulary lacks."""
    ids = {piece: n for n, piece in enumerate(side.pieces) if n > EOS_ID}
    if isinstance(side, WordPieceTokenizer):
        longest = max(map(len, ids))
        return lambda piece: _spell_word_piece(piece, ids, longest)
    from sentencepiece import SentencePieceProcessor

    # A piece contains marks of spaces already, and it may begin inside of a word.
    model = side.piece_model if isinstance(side, MarianSide) else side.contents
    assert model is not None
    proto = model_proto(model)
    proto.normalizer_spec.add_dummy_prefix = False
    proto.normalizer_spec.remove_extra_whitespaces = False
    proto.normalizer_spec.precompiled_charsmap = b""
    library = SentencePieceProcessor(model_proto=proto.SerializeToString())
    unknown = side.unknown_id
    assert unknown is not None

    def spell(piece: str) -> list[int]:
        # A byte is not a text.
        pieces = [] if _BYTE.fullmatch(piece) else library.encode(piece, out_type=str)
        return [ids.get(each, unknown) for each in pieces] or [unknown]

    return spell


def _spell_word_piece(piece: str, ids: dict[str, int], longest: int) -> list[int]:
    """Spells a word piece, whose characters are already escaped, by longest match."""
    spelled = "".join(each if each in ids else f"\\{ord(each)};" for each in piece)
    starts = [*piece_starts(spelled, ids, longest), len(spelled)]
    return [ids[spelled[a:b]] for a, b in itertools.pairwise(starts)]
