"""New vocabularies are spelled by the pieces of old ones."""

import pytest

from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers import replacement as replacement_module
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.marian_tokenizer import MarianTokenizer
from t2t_repro.tokenizers.replacement import spell_vocabulary
from t2t_repro.tokenizers.vocabulary import build_vocabulary
from t2t_repro.tokenizers.word_piece_tokenizer import WordPieceTokenizer
from t2t_repro.tokenizers.word_pieces import ESCAPE_CHARACTERS, format_file
from tests import tiny
from tests.interop.marian.small_marian import SmallMarian
from tests.tokenizers.test_separate_tokenizer import write_sides


def word_pieces(*pieces):
    every = ["<pad>_", "<EOS>_", *sorted(ESCAPE_CHARACTERS), *pieces]
    return WordPieceTokenizer(format_file(every), "vocab.subwords")


def spell(old, replacement, number):
    return [old.pieces[each] for each in replacement.spellings[number]]


def to_text(pieces):
    spelled = (
        bytes([int(piece[1:-1], 16)]) if piece.startswith("<0x") else piece.encode()
        for piece in pieces
    )
    return b"".join(spelled).decode()


def test_word_pieces_are_spelled_by_the_longest_match():
    old = word_pieces("a", "b", "n", "an", "ban", "ana_")
    new = word_pieces("a", "banana_", "ban", "\u00e9_")
    (replacement, target) = spell_vocabulary(old, new)
    assert replacement == target and replacement.kept == new.vocab_size - 2
    for number, piece in enumerate(new.pieces[:-4]):
        assert spell(old, replacement, number) == [piece]
    spelled = [spell(old, replacement, n) for n in range(-4, 0)]
    assert spelled == [["a"], ["ban", "ana_"], ["ban"], [*"\\233;_"]]


@pytest.mark.parametrize("kind", ["sentencepiece", "separate", "marian"])
def test_pieces_are_spelled_by_the_old_model(kind, tmp_path):
    """The spellings concatenate to the piece, with or without the mark of a space."""
    if kind == "marian":
        from t2t_repro.interop.marian.importer import read

        old = read(SmallMarian(size=60).write(tmp_path / "marian")).tokenizer
    elif kind == "separate":
        write_sides("sentencepiece", tmp_path)
        old = load_tokenizer(tmp_path / "vocab.sides")
    else:
        old = tiny.tokenizer(tmp_path)
    lines = [line for pair in tiny.pairs("train") for line in pair]
    lines += ["onetwo seventeen \u00e9\u00e9 two-one"] * 20
    build_vocabulary("sentencepiece", lines, 340, tmp_path / "new.model")
    new = load_tokenizer(tmp_path / "new.model")
    sides = old.source, old.target
    for side, replacement in zip(sides, spell_vocabulary(old, new), strict=True):
        assert len(replacement.spellings) == new.vocab_size
        assert replacement.spellings[:2] == [[0], [1]]
        assert replacement.kept == len({*side.pieces} & {*new.pieces})
        spelled = [spell(side, replacement, n) for n in range(new.vocab_size)]
        unknown = [side.pieces[side.unknown_id]]
        for piece, parts in zip(new.pieces, spelled, strict=True):
            if piece in side.pieces:
                assert parts == [piece]
            elif piece.startswith("<0x"):
                assert parts == unknown
            elif unknown[0] not in parts:
                assert to_text(parts) == piece
        ids = replacement_module._speller(side)("e\u2581\u2581e\u2581")
        assert to_text(side.pieces[each] for each in ids) == "e\u2581\u2581e\u2581"
        if kind == "sentencepiece":
            by_piece = dict(zip(new.pieces, spelled, strict=True))
            assert by_piece["\u00e9"] == ["<0xC3>", "<0xA9>"]
            assert by_piece["\u2581onetwo"] == ["\u2581one", *"two"]


def test_rejects_vocabularies_without_common_pieces(tmp_path):
    new = tiny.tokenizer(tmp_path)
    with pytest.raises(UserError, match="no pieces in common; use tokenizer="):
        spell_vocabulary(word_pieces("a"), new)
    pieces = MarianTokenizer.from_pieces(None, None, ["<pad>", "</s>", "<unk>", "a@@"])
    with pytest.raises(UserError, match="of subword-nmt cannot be replaced"):
        spell_vocabulary(pieces, new)
