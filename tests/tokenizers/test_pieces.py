"""Pieces have the names that their vocabulary files spell."""

import pytest
import sentencepiece

from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.vocabulary import build_vocabulary

LINES = ["one two three four", "eins zwei drei vier fünf"] * 20


def test_names_are_those_of_the_sentencepiece_library(tmp_path):
    path = tmp_path / "vocab.model"
    build_vocabulary("sentencepiece", LINES, 290, path)
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    wanted = [processor.id_to_piece(n) for n in range(processor.vocab_size())]
    assert load_tokenizer(path).pieces == wanted


@pytest.mark.parametrize("quote", ["'", ""])
def test_names_are_the_lines_of_a_subword_file(tmp_path, quote):
    names = ["<pad>_", "<EOS>_", "one_", "日_", *"\\_u;0123456789"]
    path = tmp_path / "vocab.subwords"
    path.write_text("".join(f"{quote}{name}{quote}\n" for name in names))
    assert load_tokenizer(path).pieces == names
