"""Pieces that end or begin in the middle of a word."""

from types import SimpleNamespace

from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.vocabulary import build_vocabulary
from t2t_repro.tokenizers.word_joins import word_joins

LINES = ["the dog, the dogs: and a doghouse!", "a (small) hotdog"] * 20


def test_word_pieces_without_underscore_join_the_next(tmp_path):
    path = tmp_path / "v.subwords"
    build_vocabulary("wordpiece", LINES, 60, path)
    tokenizer = load_tokenizer(path)
    joins_next, joins_last = word_joins(tokenizer, tokenizer.vocab_size + 3)
    assert len(joins_next) == len(joins_last) == tokenizer.vocab_size + 3
    assert not any(joins_last)
    names = tokenizer.pieces
    ends = {name for n, name in enumerate(names) if n > 1 and not joins_next[n]}
    assert "the_" in ends
    assert all(name.endswith("_") for name in ends)
    assert "d" in {name for n, name in enumerate(names) if joins_next[n]}


def test_sentencepiece_pieces_without_mark_join_the_last(tmp_path):
    path = tmp_path / "v.model"
    build_vocabulary("sentencepiece", LINES, 300, path)
    tokenizer = load_tokenizer(path)
    joins_next, joins_last = word_joins(tokenizer, tokenizer.vocab_size)
    assert not any(joins_next)
    inside = dict(zip(tokenizer.pieces, joins_last, strict=True))
    assert inside["d"] and inside["<0xC3>"]
    assert not inside["\u2581the"] and not inside["!"] and not inside["</s>"]


def test_the_code_of_an_escaped_character_ends_a_word():
    r"""tensor2tensor writes a character outside of the vocabulary as in "\1078;"."""
    pieces = ["<pad>_", "<EOS>_", "\\", "1078", ";_", "78;_", "._", "the_"]
    tokenizer = SimpleNamespace(pieces=pieces, file_name="v.subwords")
    joins_next, _ = word_joins(tokenizer, len(pieces))
    assert [*zip(pieces, joins_next, strict=True)][2:] == [
        *(("\\", True), ("1078", True), (";_", False), ("78;_", False)),
        *(("._", True), ("the_", False)),
    ]
