"""`Tokenizer.pieces` returns the pieces as spelled in the vocabulary file."""

import pytest
import sentencepiece

from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.vocabulary import build_vocabulary

LINES = ["one two three four", "eins zwei drei vier fünf"] * 20


def test_pieces_match_the_sentencepiece_library(tmp_path):
    path = tmp_path / "vocab.model"
    build_vocabulary("sentencepiece", LINES, 290, path)
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    expected = [processor.id_to_piece(n) for n in range(processor.vocab_size())]
    assert load_tokenizer(path).pieces == expected


@pytest.mark.parametrize("quote", ["'", ""])
def test_pieces_are_the_lines_of_a_word_piece_file(tmp_path, quote):
    pieces_in_file = ["<pad>_", "<EOS>_", "one_", "日_", *"\\_u;0123456789"]
    path = tmp_path / "vocab.subwords"
    path.write_text("".join(f"{quote}{piece}{quote}\n" for piece in pieces_in_file))
    assert load_tokenizer(path).pieces == pieces_in_file
